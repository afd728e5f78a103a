package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/adopt"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// rolloutPoll is the time between two reads of Karpenter's Deployment.
const rolloutPoll = 500 * time.Millisecond

// adoptionApply turns Karpenter's queue off.
func (s *session) adoptionApply(ctx context.Context, f adoptionFlags) error {
	a, err := s.readAdoption(ctx, f, false)
	if err != nil {
		return err
	}
	ready, err := a.prepare(ctx)
	if err != nil || !ready {
		return err
	}
	was := cmp.Or(a.facts.Karpenter.Queue, a.facts.Karpenter.Was)
	if err := a.set(ctx, ""); err != nil {
		return err
	}
	// Pods of the former setting may run until here: both programs receive notices.
	if why := a.stopped(ctx); why != "" && was != "" {
		restoring, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.timeout)
		defer cancel()
		if err := a.set(restoring, was); err != nil {
			return fmt.Errorf("nothing handles interruptions now: Lifeboat stopped during the change (%s), and giving Karpenter its queue %s back failed: %w", why, was, err)
		}
		return fmt.Errorf("lifeboat stopped during the change (%s), so Karpenter reads its queue %s again", why, was)
	}
	return a.finish("Karpenter reads no queue, and Lifeboat handles interruptions.\n" +
		fmt.Sprintf("`%s adopt karpenter undo` is the way back, as long as Karpenter's queue and rules exist.\n", s.name))
}

// adoptionUndo turns Karpenter's queue on again.
func (s *session) adoptionUndo(ctx context.Context, f adoptionFlags) error {
	a, err := s.readAdoption(ctx, f, true)
	if err != nil {
		return err
	}
	ready, err := a.prepare(ctx)
	if err != nil || !ready {
		return err
	}
	if err := a.set(ctx, cmp.Or(a.facts.Karpenter.Queue, a.facts.Karpenter.Was)); err != nil {
		return err
	}
	return a.finish("Karpenter reads its queue. Lifeboat receives notices too, until you stop it: that is safe from now on.\n")
}

// prepare shows the plan, checks that it is safe, and asks. It reports whether there is a change to make by this
// command.
func (a *adoption) prepare(ctx context.Context) (bool, error) {
	if !a.isJSON() {
		a.show()
	}
	if steps := a.plan.Blocked(); len(steps) > 0 {
		return false, blockedError(steps)
	}
	step, _ := a.plan.Step(adopt.StepQueue)
	if step.State == adopt.Done {
		if a.isJSON() {
			return false, a.writeJSON(a.report(nil))
		}
		a.out.Printf("\nNo changes are needed.\n")
		return false, nil
	}
	if !a.back && a.facts.Karpenter.Queue != "" && !a.flags.skipProbe {
		if err := a.probe(ctx); err != nil {
			return false, err
		}
	}
	if step.State == adopt.Manual && !a.flags.runHelm {
		if a.isJSON() {
			if err := a.writeJSON(a.report(nil)); err != nil {
				return false, err
			}
		} else {
			a.out.Printf("\nThe step %s is yours to make. Afterwards run this command again.\n", adopt.StepQueue)
		}
		return false, exitError{Code: ExitChanges}
	}
	return true, a.askBefore(ctx, a.consequence(), a.flags.yes)
}

// consequence says what a change does.
func (a *adoption) consequence() string {
	k := a.facts.Karpenter
	if a.back {
		return fmt.Sprintf("This restarts Karpenter, Deployment %s/%s, with its interruption queue %s.", k.Namespace, k.Name, cmp.Or(k.Queue, k.Was))
	}
	return fmt.Sprintf("This restarts Karpenter, Deployment %s/%s, without its interruption queue.", k.Namespace, k.Name)
}

// probe sends a probe through each rule. An event that Lifeboat does not confirm is an error.
func (a *adoption) probe(ctx context.Context) error {
	d := &doctorRun{session: a.session, flags: a.flags.doctor, progress: terminal.NewProgress(a.err), kube: &a.kube}
	defer d.progress.Stop()
	found, err := d.probe(ctx)
	if why := unready(found, true); err == nil && len(why) > 0 {
		err = errors.New(why[0])
	}
	if err != nil {
		return fmt.Errorf("nothing was changed, because not every probe reached Lifeboat: %w; rules that lifeboat aws did not make forward no probe: for these add --skip-probe", err)
	}
	return nil
}

// set gives Karpenter a queue, or none, and waits until its pods have the setting.
func (a *adoption) set(ctx context.Context, queue string) error {
	d, err := a.kube.karpenterDeployment(ctx)
	if err != nil {
		return err
	}
	if describeKarpenter(d).Queue != queue {
		if a.facts.Tool == adopt.Helm {
			err = a.runHelm(ctx, append(a.facts.HelmArgs(queue), a.helmConnection()...))
		} else {
			err = a.patchQueue(ctx, d, queue)
		}
		if err != nil {
			return err
		}
	}
	return a.waitRollout(ctx, queue)
}

// patchQueue writes the variable of Karpenter's Deployment, and remembers the former value with it in one request.
func (a *adoption) patchQueue(ctx context.Context, d *appsv1.Deployment, queue string) error {
	before := d.DeepCopy()
	container := &d.Spec.Template.Spec.Containers[0]
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; queueEnv(c) != nil {
			container = c
		}
	}
	v := queueEnv(container)
	if v == nil {
		container.Env = append(container.Env, corev1.EnvVar{Name: queueVariable})
		v = &container.Env[len(container.Env)-1]
	}
	if queue == "" {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[annotationQueue] = v.Value
	} else {
		delete(d.Annotations, annotationQueue)
	}
	v.Value = queue
	writing, cancel := a.kube.limit(ctx)
	defer cancel()
	if err := a.kube.Patch(writing, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing deployment %s/%s: %w (run the command again)", d.Namespace, d.Name, err)
	}
	return nil
}

// helmConnection are Helm's flags for the cluster that the user selected.
func (a *adoption) helmConnection() []string {
	var args []string
	if a.session.flags.Kubeconfig != "" {
		args = append(args, "--kubeconfig", a.session.flags.Kubeconfig)
	}
	if name := a.session.flags.Overrides.CurrentContext; name != "" {
		args = append(args, "--kube-context", name)
	}
	return args
}

// runHelmProgram runs Helm. Its output goes to standard error.
func (s *session) runHelmProgram(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, "helm", args...) //nolint:gosec // its arguments are those that the plan printed
	cmd.Stdout, cmd.Stderr = s.err, s.err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running helm %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// waitRollout waits until all pods of Karpenter have the queue, and are ready.
func (a *adoption) waitRollout(ctx context.Context, queue string) error {
	progress := terminal.NewProgress(a.err)
	defer progress.Stop()
	progress.Step("waiting until Karpenter's pods have the setting")
	waiting, cancel := context.WithTimeout(ctx, a.flags.timeout)
	defer cancel()
	for {
		d, err := a.kube.karpenterDeployment(waiting)
		if err == nil {
			a.facts.Karpenter = describeKarpenter(d)
			if a.facts.Karpenter.Queue != queue {
				return fmt.Errorf("deployment %s/%s has the queue %q again: another program, such as Argo CD or Flux, keeps the setting; change it there",
					d.Namespace, d.Name, a.facts.Karpenter.Queue)
			}
			if a.facts.Karpenter.RolledOut {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-waiting.Done():
			return fmt.Errorf("the setting of Karpenter is changed, and after %s its pods do not all run with it: see kubectl --namespace %s get pods, and run the command again",
				a.flags.timeout, a.facts.Karpenter.Namespace)
		case <-time.After(rolloutPoll):
		}
	}
}

// stopped says why Lifeboat no longer acts on notices; empty: it does.
func (a *adoption) stopped(ctx context.Context) string {
	d := &doctorRun{session: a.session, flags: a.flags.doctor, progress: terminal.NewProgress(a.err), kube: &a.kube}
	defer d.progress.Stop()
	d.readInstallation(ctx)
	found, err := d.installed(ctx)
	if err != nil {
		return err.Error()
	}
	return strings.Join(unready(found, false), "; ")
}

// finish reports the end of a change.
func (a *adoption) finish(text string) error {
	a.replan()
	if a.isJSON() {
		applied := true
		return a.writeJSON(a.report(&applied))
	}
	a.out.Printf("\n%s", text)
	return nil
}
