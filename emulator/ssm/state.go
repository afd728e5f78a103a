package ssm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Parameter is a parameter of type String.
type Parameter struct {
	Name     string
	Value    string
	Version  int
	Modified time.Time
	// ARN names no account if the parameter is AWS's own.
	ARN string
}

// State is the parameters that can be read. It is safe for concurrent use.
type State struct {
	scope   wire.Scope
	imageID func(arch string) string
	created time.Time

	mu  sync.Mutex
	own map[string]Parameter
}

// New is a state with AWS's public parameters. ImageID is the image for nodes of an
// architecture, as EC2 names it: "x86_64" or "arm64"; empty: there is none.
func New(scope wire.Scope, imageID func(arch string) string) *State {
	return &State{scope: scope, imageID: imageID, created: time.Now().UTC().Truncate(time.Second), own: map[string]Parameter{}}
}

// Put sets a parameter of the account, or another value of it.
func (s *State) Put(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[name] = Parameter{
		Name: name, Value: value, Version: s.own[name].Version + 1, Modified: time.Now(),
		ARN: s.scope.ARN("ssm", "parameter/"+strings.TrimPrefix(name, "/")),
	}
}

// Parameter finds a parameter by its name.
func (s *State) Parameter(name string) (Parameter, bool) {
	s.mu.Lock()
	p, ok := s.own[name]
	s.mu.Unlock()
	if ok {
		return p, true
	}
	value, ok := s.image(name)
	return Parameter{
		Name: name, Value: value, Version: 1, Modified: s.created,
		ARN: fmt.Sprintf("arn:%s:ssm:%s::parameter%s", s.scope.Partition(), s.scope.Region, name),
	}, ok
}

// imageName is how parameters of Amazon Linux 2023 for EKS are named: by minor version,
// architecture, variant and release. The release "recommended" is the newest one (Amazon
// EKS User Guide, Retrieve recommended Amazon Linux AMI IDs).
var imageName = regexp.MustCompile(`^/aws/service/eks/optimized-ami/(1\.[1-9][0-9])/amazon-linux-2023/(x86_64|arm64)/standard/` +
	`(recommended|amazon-eks-node-al2023-(?:x86_64|arm64)-standard-1\.[1-9][0-9]-v[0-9]{8})(?:/(image_id|image_name|release_version))?$`)

// release is the only release there is.
const release = "v20261014"

// image is the value of a public parameter. The variants nvidia and neuron are not
// there: no machine here has an accelerator.
func (s *State) image(name string) (value string, ok bool) {
	m := imageName.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	version, arch, asked, leaf := m[1], m[2], m[3], m[4]
	id := s.imageID(arch)
	known := fmt.Sprintf("amazon-eks-node-al2023-%s-standard-%s-%s", arch, version, release)
	if id == "" || asked != "recommended" && asked != known {
		return "", false
	}
	releaseVersion := version + ".0-" + strings.TrimPrefix(release, "v")
	switch leaf {
	case "image_id":
		return id, true
	case "image_name":
		return known, true
	case "release_version":
		return releaseVersion, true
	}
	// Without a leaf it is all of them in one.
	all, err := json.Marshal(struct {
		Schema  string `json:"schema_version"`
		ID      string `json:"image_id"`
		Name    string `json:"image_name"`
		Release string `json:"release_version"`
	}{"2", id, known, releaseVersion})
	return string(all), err == nil
}
