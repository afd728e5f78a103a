package sandboxstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// State is what one has to know to use a sandbox. It is what the state file
// holds.
type State struct {
	Name        string `json:"name"`
	Dir         string `json:"dir"`
	Kubeconfig  string `json:"kubeconfig,omitempty"`
	AWSEndpoint string `json:"awsEndpoint,omitempty"`
	Account     string `json:"account"`
	Region      string `json:"region"`
	QueueURL    string `json:"queueURL,omitempty"`
	// DeadLetterURL is the queue of what could not be read or delivered.
	DeadLetterURL string `json:"deadLetterURL,omitempty"`
	// KarpenterQueueURL is the queue that Karpenter reads, if it has one.
	KarpenterQueueURL string `json:"karpenterQueueURL,omitempty"`
	// The emulator does not check signatures, but clients must have something
	// to sign with.
	AccessKeyID     string `json:"accessKeyID"`
	SecretAccessKey string `json:"secretAccessKey"`
	// Supervisor is the process that everything belongs to.
	Supervisor int       `json:"supervisor"`
	Started    time.Time `json:"started"`
	Parts      []Part    `json:"parts,omitempty"`
	// Ready says that everything is up.
	Ready bool `json:"ready"`
}

// Part is one of the things a sandbox consists of.
type Part struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	Log     string `json:"log,omitempty"`
}

// NameEnv names the sandbox that the commands of lifeboat use.
const NameEnv = "LIFEBOAT_SANDBOX"

// EnvVar is an environment variable.
type EnvVar struct{ Name, Value string }

// Env is what points kubectl, the AWS CLI, AWS SDKs and lifeboat at the sandbox.
func (s State) Env() []EnvVar {
	return []EnvVar{
		{"KUBECONFIG", s.Kubeconfig},
		{"AWS_ENDPOINT_URL", s.AWSEndpoint},
		{"AWS_REGION", s.Region},
		{"AWS_DEFAULT_REGION", s.Region}, // for version 1 of the AWS CLI
		{"AWS_ACCESS_KEY_ID", s.AccessKeyID},
		{"AWS_SECRET_ACCESS_KEY", s.SecretAccessKey},
		{NameEnv, s.Name},
	}
}

// Exports is the same as lines for a shell.
func (s State) Exports() string {
	var b strings.Builder
	for _, v := range s.Env() {
		fmt.Fprintf(&b, "export %s='%s'\n", v.Name, strings.ReplaceAll(v.Value, "'", `'\''`))
	}
	return b.String()
}

// stateFile is in the directory of a sandbox.
const stateFile = "state.json"

// Write replaces the state file in one step.
func (s State) Write() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the sandbox's state: %w", err)
	}
	path := filepath.Join(s.Dir, stateFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	return nil
}

// Read reads the state file in dir; false: there is none.
func Read(dir string) (State, bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, fmt.Errorf("reading the sandbox's state: %w", err)
	}
	var s State
	if err := json.Unmarshal(text, &s); err != nil {
		return State{}, false, fmt.Errorf("reading the sandbox's state in %s: %w: remove that directory", dir, err)
	}
	return s, true, nil
}

// RemovePart removes the part of a name, which has ended.
func (s *State) RemovePart(name string) {
	s.Parts = slices.DeleteFunc(s.Parts, func(p Part) bool { return p.Name == name })
}

// SetPart adds a part, or replaces the one of that name.
func (s *State) SetPart(p Part) {
	for i := range s.Parts {
		if s.Parts[i].Name == p.Name {
			s.Parts[i] = p
			return
		}
	}
	s.Parts = append(s.Parts, p)
}
