package ec2

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Tag is one tag of one resource, as DescribeTags lists it.
type Tag struct {
	ResourceID, ResourceType, Key, Value string
}

// tagged is a resource of a kind of which the state holds little more than the tags.
type tagged struct {
	kind string // as in Tag.ResourceType
	tags map[string]string
}

// maxTags is how many tags a resource may have (EC2 User Guide, Tag restrictions).
const maxTags = 50

// CreateTags sets tags on resources of any kind. With an unknown resource it sets none.
func (s *State) CreateTags(ids []string, tags map[string]string) error {
	if err := checkTags(tags); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	owned, err := s.tagsOf(ids)
	if err != nil {
		return err
	}
	for i, m := range owned {
		merged := maps.Clone(m)
		maps.Copy(merged, tags)
		if ownTags(merged) > maxTags {
			return tooManyTags(ids[i]) //nolint:gosec // G602: owned has an element for each id
		}
	}
	for _, m := range owned {
		maps.Copy(m, tags)
	}
	s.publishAll(ids)
	return nil
}

// DeleteTags removes tags: all if none is named, and only with the given value if it is not nil.
func (s *State) DeleteTags(ids []string, tags map[string]*string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	owned, err := s.tagsOf(ids)
	if err != nil {
		return err
	}
	for _, m := range owned {
		maps.DeleteFunc(m, func(k, v string) bool {
			want, named := tags[k]
			return !reserved(k) && (len(tags) == 0 || named && (want == nil || *want == v))
		})
	}
	s.publishAll(ids)
	return nil
}

// publishAll publishes the instances and spot requests among the resources. It needs the lock.
func (s *State) publishAll(ids []string) {
	for _, id := range ids {
		if in := s.instances[id]; in != nil {
			s.publish(in)
		}
		if r := s.requests[id]; r != nil {
			s.requestReplicas.Put(id, r.clone())
		}
	}
}

// Tags lists every tag, ordered by resource and key.
func (s *State) Tags() []Tag {
	var out []Tag
	s.mu.Lock()
	list := s.seen(nil)
	s.mu.Unlock()
	for _, in := range list {
		out = appendTags(out, in.ID, "instance", in.Tags)
	}
	for _, r := range s.seenRequests() {
		out = appendTags(out, r.ID, "spot-instances-request", r.Tags)
	}
	s.mu.Lock()
	for id, r := range s.tagged {
		out = appendTags(out, id, r.kind, r.tags)
	}
	s.mu.Unlock()
	slices.SortStableFunc(out, func(a, b Tag) int {
		return cmp.Or(strings.Compare(a.ResourceID, b.ResourceID), strings.Compare(a.Key, b.Key))
	})
	return out
}

func appendTags(out []Tag, id, kind string, tags map[string]string) []Tag {
	for k, v := range tags {
		out = append(out, Tag{id, kind, k, v})
	}
	return out
}

// tagsOf returns the tag maps of the resources themselves. It needs the lock.
func (s *State) tagsOf(ids []string) ([]map[string]string, error) {
	var out []map[string]string
	for _, id := range ids {
		switch in, r, other := s.instances[id], s.requests[id], s.tagged[id]; {
		case in != nil:
			out = append(out, in.Tags)
		case r != nil:
			out = append(out, r.Tags)
		case other.tags != nil:
			out = append(out, other.tags)
		default:
			return nil, resourceNotFound(id)
		}
	}
	return out, nil
}

// tagsOn is a copy of the tags of a resource other than an instance or a request.
func (s *State) tagsOn(id string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.tagged[id].tags)
}

// reserved reports whether only AWS itself can set a tag.
func reserved(key string) bool { return strings.HasPrefix(strings.ToLower(key), "aws:") }

// ownTags counts the user's tags: AWS's own do not count against maxTags.
func ownTags(tags map[string]string) int {
	n := 0
	for k := range tags {
		if !reserved(k) {
			n++
		}
	}
	return n
}

func checkTags(tags map[string]string) error {
	for k, v := range tags {
		switch {
		case k == "" || len(k) > 128:
			return invalidValue("Tag keys must be 1 to 128 characters long")
		case len(v) > 256:
			return invalidValue("Tag values must be at most 256 characters long")
		case reserved(k):
			return invalidValue("Tag keys starting with 'aws:' are reserved for internal use")
		}
	}
	return nil
}
