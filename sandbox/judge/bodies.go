package judge

import (
	"bytes"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// bodies are the last known objects, by resource, namespace and name. A client may ask for metadata
// only in the response to its patch; the object then follows from the patch.
type bodies map[string]json.RawMessage

// of returns the object after a request; nil: the log does not say.
func (b bodies) of(r Request) (json.RawMessage, error) {
	key := r.Resource + "/" + r.Namespace + "/" + r.Name
	var answer struct{ Kind string }
	if _, err := decode(r.Object, &answer); err != nil {
		return nil, err
	}
	switch {
	case answer.Kind == "Status":
		return nil, nil
	case answer.Kind != "PartialObjectMetadata":
		b[key] = r.Object
	case r.Verb == "create":
		b[key] = r.Body
	case b[key] == nil:
		return nil, nil // created before the observation
	default:
		after, err := patched(b[key], r.Body)
		if err != nil {
			return nil, fmt.Errorf("applying the patch %.200s: %w", r.Body, err)
		}
		b[key] = after
	}
	return b[key], nil
}

// patched applies a JSON patch (RFC 6902), which is an array, or a merge patch (RFC 7396).
func patched(object, patch json.RawMessage) (json.RawMessage, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(patch), []byte("[")) {
		return jsonpatch.MergePatch(object, patch)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.EnsurePathExistsOnAdd, options.AllowMissingPathOnRemove = true, true
	return decoded.ApplyWithOptions(object, options)
}
