// Package unkind chooses the answers of the emulated AWS in tests: late, old, twice and in any order, as
// AWS documents them.
package unkind

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that repeats the choices of a run.
const Variable = "LIFEBOAT_UNKIND"

// Seed is random, so that each run meets other answers. The log says how to repeat the run.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := Asked(t)
	if seed == 0 {
		seed = rand.Uint64() | 1 // zero would turn it off
	}
	t.Logf("%s=%d repeats the answers of the emulated AWS", Variable, seed)
	return seed
}

// Asked is the seed in the environment; zero: none, so that the emulated AWS answers at its best.
func Asked(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv(Variable)
	if text == "" {
		return 0
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v: expected a positive number, such as 1", Variable, text, err)
	}
	return seed
}
