package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// requestTimeout is the timeout of one request to the API server.
const requestTimeout = 10 * time.Second

// Target is the sandbox that faults break.
type Target struct {
	dir  string
	kube client.Client
	sqs  *sqs.Client
}

// Open returns the sandbox of a directory as a target. It uses the administrator's own connection,
// which no fault disturbs.
func Open(dir string) (*Target, error) {
	state, ok, err := sandboxstate.Read(dir)
	if err == nil && !ok {
		err = sandboxstate.ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox in %s: %w", dir, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", state.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the sandbox's kubeconfig: %w", err)
	}
	config.WarningHandler, config.Timeout, config.QPS = rest.NoWarnings{}, requestTimeout, -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the sandbox's API server: %w", err)
	}
	return &Target{dir: dir, kube: kube, sqs: sqs.NewFromConfig(awshttp.Use(aws.Config{
		Region: state.Region, BaseEndpoint: aws.String(state.AWSEndpoint),
		Credentials: awshttp.StaticCredentials(state.AccessKeyID, state.SecretAccessKey),
	}))}, nil
}

func (t *Target) state() (sandboxstate.State, error) {
	state, ok, err := sandboxstate.Read(t.dir)
	if err == nil && !ok {
		err = sandboxstate.ErrNotRunning
	}
	return state, err
}

// exists reports whether the sandbox still exists; what has been removed needs no repair.
func (t *Target) exists() bool {
	_, err := t.state()
	return !errors.Is(err, sandboxstate.ErrNotRunning)
}

// parts returns the parts of a name: the part itself, and its numbered or named instances.
func (t *Target) parts(name string) ([]sandboxstate.Part, error) {
	state, err := t.state()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(state.Parts, func(p sandboxstate.Part) bool {
		return p.PID <= 0 || p.Name != name && !strings.HasPrefix(p.Name, name+"-")
	}), nil
}

// ErrNoPart says that the part that a fault breaks does not run.
var ErrNoPart = errors.New("the sandbox has no part")

// supports reports why a fault cannot be applied to this sandbox.
func (t *Target) supports(f Fault) error {
	if err := f.Missing(); err != nil {
		return err
	}
	if f.Part == "" {
		return nil
	}
	found, err := t.parts(f.Part)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w %s: `lifeboat sandbox up --help` says how to add it", ErrNoPart, f.Part)
	}
	return err
}

// Supported lists the faults that can be applied to this sandbox.
func (t *Target) Supported() []Fault {
	return slices.DeleteFunc(Menu(), func(f Fault) bool { return t.supports(f) != nil })
}
