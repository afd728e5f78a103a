package imds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const (
	// PolicyName is the ValidatingAdmissionPolicy of the chart that limits an
	// agent to the NodeNotice of its node.
	PolicyName = "lifeboat-agent"
	// ForeignName is the NodeNotice that an agent tries to create, in a dry run,
	// to find out whether the policy is in force. It is of no node.
	ForeignName = "lifeboat-agent-policy-check"

	// policyPatience is how long the agent waits for the policy before it
	// writes nevertheless. The API server needs seconds to enforce a new one.
	policyPatience = time.Minute
	// policyInterval is the time between checks after that.
	policyInterval = 5 * time.Minute
)

// policyCheck remembers whether the admission policy is in force. The zero value
// has not checked yet.
type policyCheck struct {
	ok          bool
	first, next time.Time
	last        *policyError
}

// policyError says that the admission policy is not known to be in force.
type policyError struct {
	// overdue says that the agent no longer waits for it.
	overdue bool
	cause   error
}

func (e *policyError) Error() string { return e.cause.Error() }
func (e *policyError) Unwrap() error { return e.cause }

// inForce returns nil once the API server has refused the NodeNotice of another
// node. An agent that finds no policy does not become Ready, so that an
// installation without the policy is noticed. It still writes after a minute:
// a lost notice would be worse, and the policy restricts stolen tokens, not this
// process.
func (p *policyCheck) inForce(ctx context.Context, kube client.Client, now time.Time) *policyError {
	if p.ok {
		return nil
	}
	if p.last != nil && now.Before(p.next) {
		return p.last
	}
	if p.first.IsZero() {
		p.first = now
	}
	err := CheckPolicy(ctx, kube)
	if err == nil {
		p.ok = true
		return nil
	}
	p.last = &policyError{cause: err, overdue: now.Sub(p.first) >= policyPatience}
	if p.last.overdue && errors.Is(err, errNotInForce) { // else the API server did not answer, and every write tries again
		p.next = now.Add(policyInterval)
	}
	return p.last
}

var errNotInForce = errors.New("the ValidatingAdmissionPolicy " + PolicyName + " is not in force: a stolen token could write about other nodes. Install the policy and its binding, as the chart does")

// CheckPolicy returns nil if the policy refuses, in a dry run, the NodeNotice of
// another node.
func CheckPolicy(ctx context.Context, kube client.Client) error {
	err := kube.Create(ctx, &v1beta1.NodeNotice{
		ObjectMeta: metav1.ObjectMeta{Name: ForeignName},
		Spec:       v1beta1.NodeNoticeSpec{InstanceID: "i-00000000", NodeUID: ForeignName},
	}, client.DryRunAll)
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+PolicyName+"'"):
		return nil
	case err == nil:
		return errNotInForce
	}
	return fmt.Errorf("checking whether the ValidatingAdmissionPolicy %s is in force: %w", PolicyName, err)
}
