// Package pattern matches events against event patterns, as EventBridge does.
//
// It follows the EventBridge User Guide, "Comparison operators for use in event patterns",
// and the README of event-ruler. It shares no code with the engine of the product, so that a
// mistake there does not hide itself. Both must pass the cases in
// internal/testkit/conformance.
//
// The matcher tries each combination of array elements. That is simple, and slow only for
// patterns with many fields in many large arrays.
package pattern
