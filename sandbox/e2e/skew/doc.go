// Package skew upgrades an older release to this one and back while twenty interruptions are under
// way: controllers and agents as processes, on a real control plane. `make skew` runs it.
package skew
