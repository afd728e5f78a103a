// Package model is an in-memory Kubernetes cluster for model runs. It has an API server whose
// requests can fail, lose their answer, or be the last of their process. It also has caches that
// lag behind, and the controllers and kubelets that pods and nodes need.
//
// All of it runs in a testing/synctest bubble and is driven by one Scheduler. Concurrent
// requests are ordered first, so that a run depends only on its seed and can be replayed.
package model
