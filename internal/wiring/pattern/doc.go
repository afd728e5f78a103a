// Package pattern is the EventBridge event-pattern language: it compiles a pattern, matches events against it, says
// why an event does not match, and lints a pattern against the events AWS is known to send.
//
// A pattern is a JSON object in the shape of the event. Every leaf is an array of alternatives, of which one must hold;
// sibling keys must all hold; "$or" offers whole objects as alternatives. The grammar is that of the EventBridge User
// Guide, "Comparison operators for use in event patterns"; where the guide is silent, the behaviour is that of AWS's
// published reference engine, event-ruler, error texts included.
//
// Three choices go beyond the reference engine, each on the side of the least surprise:
//
//   - Alternatives of one leaf are independent. In event-ruler, an IP literal beside a prefix changes how the prefix
//     sees the value.
//   - Array consistency is resolved without backtracking, so that an event with many large arrays costs time in
//     proportion to its size, not to the product of the arrays.
//   - Text after the pattern's closing brace is an error, not ignored.
//
// The package is pure: no clock, no network, no client libraries. AWS calls what it delivers an event, and so does this
// package; it is the one place in the code base where the word is not "notice".
package pattern
