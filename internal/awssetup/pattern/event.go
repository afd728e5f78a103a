package pattern

import (
	"errors"
	"fmt"
)

// Event is a decoded event. It can be matched against any number of patterns. It is immutable and safe for concurrent
// use.
type Event struct {
	root *node
}

// ErrNotObject is the error of Decode for JSON that is not an object.
var ErrNotObject = errors.New("an event must be a JSON object")

// Decode reads an event. Its error contains the position of invalid JSON, or wraps ErrNotObject.
func Decode(event []byte) (*Event, error) {
	root, err := readJSON(event)
	if j := (*jsonError)(nil); errors.As(err, &j) {
		return nil, fmt.Errorf("reading event: at byte %d: %w", j.offset, err)
	}
	if root.kind != kindObject {
		return nil, fmt.Errorf("reading event: %w, not %s", ErrNotObject, root.kind)
	}
	return &Event{root: root}, nil
}
