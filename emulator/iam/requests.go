package iam

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// api turns requests into calls on the state.
type api struct{ state *State }

type tag struct{ Key, Value string }

func tagsFromWire(list []tag) map[string]string {
	out := map[string]string{}
	for _, t := range list {
		out[t.Key] = t.Value
	}
	return out
}

func tagsToWire(tags map[string]string) wire.Members[tag] {
	var out wire.Members[tag]
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, tag{key, tags[key]})
	}
	return out
}

// The members of the answers (IAM API Reference, Data types).

type roleReply struct {
	Path       string
	Name       string `xml:"RoleName"`
	ID         string `xml:"RoleId"`
	ARN        string `xml:"Arn"`
	CreateDate wire.Time
	Trust      string            `xml:"AssumeRolePolicyDocument"`
	MaxSession int               `xml:"MaxSessionDuration"`
	Tags       wire.Members[tag] `xml:",omitempty"`
}

// roleToWire writes the policy document percent-encoded, as IAM does (RFC 3986).
func roleToWire(r Role) roleReply {
	return roleReply{r.Path, r.Name, r.ID, r.ARN, wire.Time{Time: r.Created}, url.PathEscape(r.Trust), 3600, tagsToWire(r.Tags)}
}

type profileReply struct {
	Path       string
	Name       string `xml:"InstanceProfileName"`
	ID         string `xml:"InstanceProfileId"`
	ARN        string `xml:"Arn"`
	CreateDate wire.Time
	Roles      wire.Members[roleReply]
	Tags       wire.Members[tag]
}

func profileToWire(p Profile) profileReply {
	out := profileReply{Path: p.Path, Name: p.Name, ID: p.ID, ARN: p.ARN, CreateDate: wire.Time{Time: p.Created}, Tags: tagsToWire(p.Tags)}
	for _, r := range p.Roles {
		out.Roles = append(out.Roles, roleToWire(r))
	}
	return out
}

type profileInput struct {
	Name    string `query:"InstanceProfileName"`
	Path    string
	Role    string `query:"RoleName"`
	Tags    []tag
	TagKeys []string
}

type profileOutput struct {
	Profile profileReply `xml:"InstanceProfile"`
}

func (a *api) createProfile(_ context.Context, _ *wire.Request, in *profileInput) (*profileOutput, error) {
	p, err := a.state.CreateProfile(in.Name, in.Path, tagsFromWire(in.Tags))
	return &profileOutput{profileToWire(p)}, err
}

func (a *api) getProfile(_ context.Context, _ *wire.Request, in *profileInput) (*profileOutput, error) {
	p, err := a.state.Profile(in.Name)
	return &profileOutput{profileToWire(p)}, err
}

func (a *api) deleteProfile(_ context.Context, _ *wire.Request, in *profileInput) (*wire.None, error) {
	return nil, a.state.DeleteProfile(in.Name)
}

func (a *api) addRole(_ context.Context, _ *wire.Request, in *profileInput) (*wire.None, error) {
	return nil, a.state.AddRole(in.Name, in.Role)
}

func (a *api) removeRole(_ context.Context, _ *wire.Request, in *profileInput) (*wire.None, error) {
	return nil, a.state.RemoveRole(in.Name, in.Role)
}

func (a *api) tagProfile(_ context.Context, _ *wire.Request, in *profileInput) (*wire.None, error) {
	return nil, a.state.Tag(in.Name, tagsFromWire(in.Tags), nil)
}

func (a *api) untagProfile(_ context.Context, _ *wire.Request, in *profileInput) (*wire.None, error) {
	return nil, a.state.Tag(in.Name, nil, in.TagKeys)
}

type tagsOutput struct {
	Tags        wire.Members[tag]
	IsTruncated bool
}

func (a *api) listTags(_ context.Context, _ *wire.Request, in *profileInput) (*tagsOutput, error) {
	p, err := a.state.Profile(in.Name)
	return &tagsOutput{Tags: tagsToWire(p.Tags)}, err
}

type listInput struct {
	PathPrefix string
	Marker     string
	MaxItems   *int
}

type listOutput struct {
	Profiles    wire.Members[profileReply] `xml:"InstanceProfiles"`
	IsTruncated bool
	Marker      string `xml:",omitempty"`
}

// listProfiles leaves tags out, as IAM does in lists.
func (a *api) listProfiles(_ context.Context, _ *wire.Request, in *listInput) (*listOutput, error) {
	if in.PathPrefix != "" && in.PathPrefix[0] != '/' {
		return nil, constraint(in.PathPrefix, "pathPrefix", `satisfy regular expression pattern: \u002F[\u0021-\u007F]*`)
	}
	list, next, err := page(a.state.Profiles(in.PathPrefix), in)
	out := &listOutput{IsTruncated: next != "", Marker: next}
	for _, p := range list {
		reply := profileToWire(p)
		reply.Tags = nil
		out.Profiles = append(out.Profiles, reply)
	}
	return out, err
}

// page cuts one page out of a list: 100 items by default (IAM API Reference,
// ListInstanceProfiles).
func page[T any](list []T, in *listInput) (items []T, next string, err error) {
	size, start := 100, 0
	if in.MaxItems != nil {
		size = *in.MaxItems
	}
	if size < 1 || size > 1000 {
		return nil, "", constraint(size, "maxItems", "have value between 1 and 1000")
	}
	if in.Marker != "" {
		raw, decodeErr := base64.StdEncoding.DecodeString(in.Marker)
		n, parseErr := strconv.Atoi(string(raw))
		if decodeErr != nil || parseErr != nil || n < 0 {
			return nil, "", validation("Invalid Marker.")
		}
		start = min(n, len(list))
	}
	end := min(start+size, len(list))
	if end < len(list) {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return list[start:end], next, nil
}

type roleInput struct {
	Name  string `query:"RoleName"`
	Path  string
	Trust string `query:"AssumeRolePolicyDocument"`
	Tags  []tag
}

type roleOutput struct {
	Role roleReply
}

func (a *api) createRole(_ context.Context, _ *wire.Request, in *roleInput) (*roleOutput, error) {
	if !json.Valid([]byte(in.Trust)) {
		return nil, malformedPolicy()
	}
	r, err := a.state.CreateRole(in.Name, in.Path, in.Trust, tagsFromWire(in.Tags))
	return &roleOutput{roleToWire(r)}, err
}

func (a *api) getRole(_ context.Context, _ *wire.Request, in *roleInput) (*roleOutput, error) {
	r, err := a.state.Role(in.Name)
	return &roleOutput{roleToWire(r)}, err
}

type trustInput struct {
	Name  string `query:"RoleName"`
	Trust string `query:"PolicyDocument"`
}

func (a *api) updateTrust(_ context.Context, _ *wire.Request, in *trustInput) (*wire.None, error) {
	if !json.Valid([]byte(in.Trust)) {
		return nil, malformedPolicy()
	}
	return nil, a.state.SetTrust(in.Name, in.Trust)
}

func (a *api) deleteRole(_ context.Context, _ *wire.Request, in *roleInput) (*wire.None, error) {
	return nil, a.state.DeleteRole(in.Name)
}
