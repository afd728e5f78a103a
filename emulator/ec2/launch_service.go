package ec2

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// TemplateLaunch requests one instance of a launch template, as AWS services do for their users.
type TemplateLaunch struct {
	Template TemplateRef
	SubnetID string
	// Tags override those of the template.
	Tags map[string]string
	// SystemTags are tags of the service itself, such as aws:autoscaling:groupName.
	SystemTags map[string]string
}

// LaunchTemplate launches one instance, and returns it with its template, named by id, name and
// number. The errors are those of RunInstances.
func (s *State) LaunchTemplate(in TemplateLaunch) (Instance, TemplateRef, error) {
	t, v, err := s.FindTemplate(in.Template)
	if err != nil {
		return Instance{}, TemplateRef{}, err
	}
	ref := TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.Itoa(v.Number)}
	input, err := v.Data.launch()
	if err != nil {
		return Instance{}, ref, err
	}
	input.Tags = merged(input.Tags, in.Tags)
	input.systemTags = merged(templateTags(ref.ID, ref.Version), in.SystemTags)
	if in.SubnetID != "" {
		input.SubnetID, input.Zone = in.SubnetID, ""
	}
	made, err := s.Launch(input)
	if err != nil {
		return Instance{}, ref, err
	}
	return made[0], ref, nil
}

// SetSystemTags sets tags of an instance that only AWS sets, and removes others. For an unknown
// instance it does nothing.
func (s *State) SetSystemTags(id string, set map[string]string, drop ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.instances[id]
	if in == nil {
		return
	}
	maps.Copy(in.Tags, set)
	maps.DeleteFunc(in.Tags, func(key, _ string) bool { return strings.HasPrefix(key, "aws:") && slices.Contains(drop, key) })
	s.publish(in)
}
