// Package model is a Kubernetes cluster in memory for model runs: an API server
// whose every request can be made to fail, to be carried out without an answer,
// or to be the last that its process makes; caches that lag behind it; and the
// controllers and kubelets that pods and nodes depend on.
//
// All of it runs in a testing/synctest bubble and is driven by one Conductor.
// Whatever several goroutines ask for at the same time is put in an order first,
// so that a run is made by its seed alone and can be played again.
package model
