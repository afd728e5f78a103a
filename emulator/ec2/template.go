package ec2

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Template is a launch template: a named set of launch parameters, in versions.
type Template struct {
	ID, Name  string
	CreatedBy string // ARN
	Created   time.Time
	Default   int
	Versions  []TemplateVersion // oldest first; deleted ones are missing
	Tags      map[string]string
	latest    int
	token     string
}

// TemplateVersion is one version of a launch template; it is immutable.
type TemplateVersion struct {
	Number      int
	Description string
	Created     time.Time
	Data        TemplateData
}

// TemplateRef names a template, by id or name, and one of its versions: a number, $Latest or
// $Default. An empty version is $Default.
type TemplateRef struct {
	ID      string `query:"LaunchTemplateId"`
	Name    string `query:"LaunchTemplateName"`
	Version string
}

// Latest is the number of the newest version.
func (t Template) Latest() int { return t.latest }

// version finds one version.
func (t Template) version(number string) (TemplateVersion, error) {
	n := t.Default
	switch number {
	case "", "$Default":
	case "$Latest":
		n = t.latest
	default:
		var err error
		if n, err = strconv.Atoi(number); err != nil {
			return TemplateVersion{}, invalidValue("Invalid launch template version: either '$Default', '$Latest', or a numeric version are allowed.")
		}
	}
	i := slices.IndexFunc(t.Versions, func(v TemplateVersion) bool { return v.Number == n })
	if i < 0 {
		return TemplateVersion{}, templateVersionNotFound(number)
	}
	return t.Versions[i], nil
}

func (t Template) clone() Template {
	t.Versions = slices.Clone(t.Versions)
	t.Tags = maps.Clone(t.Tags)
	return t
}

var templateName = regexp.MustCompile(`^[a-zA-Z0-9().\-/_]{3,128}$`)

// CreateTemplate creates a launch template with one version. A call that repeats a client token
// returns the result of the first. Errors: InvalidLaunchTemplateName.MalformedException and
// .AlreadyExistsException, InvalidUserData.Malformed, those of tags.
func (s *State) CreateTemplate(name, description, token string, data TemplateData, tags map[string]string) (Template, error) {
	if !templateName.MatchString(name) {
		return Template{}, malformedTemplateName()
	}
	if err := firstError(checkUserData(data.UserData), checkTags(tags)); err != nil {
		return Template{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.templateNamed(name); t != nil {
		if token != "" && t.token == token {
			return s.shown(t), nil
		}
		return Template{}, templateExists(name)
	}
	now := time.Now().UTC().Truncate(time.Second)
	t := &Template{
		ID: newID("lt"), Name: name, Created: now, Default: 1, latest: 1, token: token,
		CreatedBy: "arn:" + s.scope.Partition() + ":iam::" + s.scope.Account + ":user/lifeboat",
		Versions:  []TemplateVersion{{1, description, now, data}},
	}
	s.templates[t.ID] = t
	s.tagged[t.ID] = tagged{"launch-template", merged(tags)}
	return s.shown(t), nil
}

// AddTemplateVersion adds a version: data merged over the source version, if one is named. Errors
// as for an unknown template, and InvalidUserData.Malformed.
func (s *State) AddTemplateVersion(ref TemplateRef, source, description string, data TemplateData) (Template, TemplateVersion, error) {
	if err := checkUserData(data.UserData); err != nil {
		return Template{}, TemplateVersion{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(ref)
	if err != nil {
		return Template{}, TemplateVersion{}, err
	}
	if source != "" {
		from, err := t.version(source)
		if err != nil {
			return Template{}, TemplateVersion{}, err
		}
		data = data.over(from.Data)
	}
	t.latest++
	v := TemplateVersion{t.latest, description, time.Now().UTC().Truncate(time.Second), data}
	t.Versions = append(t.Versions, v)
	return s.shown(t), v, nil
}

// SetDefaultVersion makes a version the default.
func (s *State) SetDefaultVersion(ref TemplateRef) (Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(ref)
	if err != nil {
		return Template{}, err
	}
	v, err := t.version(ref.Version)
	if err != nil {
		return Template{}, err
	}
	t.Default = v.Number
	return s.shown(t), nil
}

// DeleteTemplateVersion deletes one version. Problem is EC2's code if it did not:
// launchTemplateVersionDoesNotExist, or invalidParameterValue for the default version; the error is
// for an unknown template.
func (s *State) DeleteTemplateVersion(ref TemplateRef) (_ Template, problem string, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(ref)
	if err != nil {
		return Template{}, "", err
	}
	v, err := t.version(ref.Version)
	switch {
	case err != nil:
		problem = "launchTemplateVersionDoesNotExist"
	case v.Number == t.Default:
		problem = "invalidParameterValue"
	default:
		t.Versions = slices.DeleteFunc(t.Versions, func(other TemplateVersion) bool { return other.Number == v.Number })
	}
	return s.shown(t), problem, nil
}

// DeleteTemplate deletes a launch template; its instances do not change.
func (s *State) DeleteTemplate(ref TemplateRef) (Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(ref)
	if err != nil {
		return Template{}, err
	}
	gone := s.shown(t)
	delete(s.templates, t.ID)
	delete(s.tagged, t.ID)
	return gone, nil
}

// FindTemplate returns a template and the version that ref names.
func (s *State) FindTemplate(ref TemplateRef) (Template, TemplateVersion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(ref)
	if err != nil {
		return Template{}, TemplateVersion{}, err
	}
	v, err := t.version(ref.Version)
	return s.shown(t), v, err
}

// Templates lists the launch templates by name.
func (s *State) Templates() []Template {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Template, 0, len(s.templates))
	for _, t := range s.templates {
		out = append(out, s.shown(t))
	}
	slices.SortFunc(out, func(a, b Template) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// template finds a template by id or name. It needs the lock.
func (s *State) template(ref TemplateRef) (*Template, error) {
	switch {
	case ref.ID != "" && ref.Name != "":
		return nil, invalidCombination("You can specify either the launch template ID or the launch template name, but not both")
	case ref.ID != "":
		if t := s.templates[ref.ID]; t != nil {
			return t, nil
		}
		return nil, templateIDNotFound(ref.ID)
	case ref.Name != "":
		if t := s.templateNamed(ref.Name); t != nil {
			return t, nil
		}
		return nil, templateNameNotFound(ref.Name)
	default:
		return nil, missingParameter("LaunchTemplateId or LaunchTemplateName")
	}
}

// templateNamed needs the lock.
func (s *State) templateNamed(name string) *Template {
	for _, t := range s.templates {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// shown is a copy for callers, with the tags. It needs the lock.
func (s *State) shown(t *Template) Template {
	out := t.clone()
	out.Tags = maps.Clone(s.tagged[t.ID].tags)
	return out
}
