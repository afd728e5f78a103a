// Package pattern implements the EventBridge event-pattern language. It compiles a pattern, matches events against
// it, and explains why an event does not match. It lints a pattern against the events that AWS is known to send.
//
// A pattern is a JSON object in the shape of the event. Every leaf is an array of alternatives, of which one must
// match. Sibling keys must all match. "$or" offers whole objects as alternatives. The grammar is that of the
// EventBridge User Guide, "Comparison operators for use in event patterns". Where the guide is silent, the behaviour
// is that of AWS's published reference engine, event-ruler, including its error texts.
//
// Three choices differ from the reference engine, to avoid surprises:
//
//   - Alternatives of one leaf are independent. In event-ruler, an IP literal beside a prefix changes how the prefix
//     sees the value.
//   - Array consistency is resolved without backtracking. The cost of an event with many large arrays is therefore
//     proportional to its size, not to the product of the arrays.
//   - Text after the pattern's closing brace is an error, not ignored.
//
// The package is pure: no clock, no network, no client libraries. AWS uses the word event for what it delivers, and
// so does this package; elsewhere the code base says "notice".
package pattern
