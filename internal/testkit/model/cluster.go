package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// leaseTime is how long a node without power still counts as Ready.
	leaseTime = 40 * time.Second
	// tolerated is how long pods stay on a node that is not Ready.
	tolerated = 5 * time.Minute
)

// Cluster adds to a store the simulated components of a cluster: kubelets, a scheduler, and the
// controllers of workloads, budgets and lost nodes.
type Cluster struct {
	*Server
	scheduler *Scheduler
	apps      []*App
	off       map[string]bool // nodes without power, by name
	serial    int
	dirty     map[Key]bool
}

// NewCluster returns an empty cluster.
func NewCluster(c *Scheduler) *Cluster {
	k := &Cluster{Server: NewServer(c.Now), scheduler: c, off: map[string]bool{}, dirty: map[Key]bool{}}
	k.Changed = append(k.Changed, k.changed)
	return k
}

// AddNode adds a node that is Ready.
func (k *Cluster) AddNode(n *corev1.Node) {
	delete(k.off, n.Name)
	k.must(k.Create(n))
}

func (k *Cluster) must(o client.Object, err error) client.Object {
	if err != nil {
		panic(fmt.Sprintf("the model is wrong: %v", err))
	}
	return o
}

// Off reports whether a node's instance has no power.
func (k *Cluster) Off(node string) bool { return k.off[node] }

// Node returns a node, or nil.
func (k *Cluster) Node(name string) *corev1.Node {
	n, _ := k.Get(Key{Kind: "Node", Name: name}).(*corev1.Node)
	return n
}

// Pods returns all pods, or those of a node, by name.
func (k *Cluster) Pods(fits func(*corev1.Pod) bool) []*corev1.Pod {
	var all []*corev1.Pod
	k.Each("Pod", func(o client.Object) {
		if p, ok := o.(*corev1.Pod); ok && fits(p) {
			all = append(all, p)
		}
	})
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all
}

// On selects the pods of a node.
func On(node string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Spec.NodeName == node }
}

// StopKubelet stops the kubelet of a node, while its instance runs on. To the cluster that is
// the same as a power cut.
func (k *Cluster) StopKubelet(name string) { k.PowerOff(name) }

// PowerOff cuts the power of a node's instance. As in a real cluster, the node becomes not Ready
// after some time, and its pods are evicted.
func (k *Cluster) PowerOff(name string) {
	n := k.Node(name)
	if n == nil || k.off[name] {
		return
	}
	k.off[name] = true
	uid := n.UID
	k.scheduler.After(leaseTime, "lease of "+name, func() { k.unready(name, uid) })
}

func (k *Cluster) same(name string, uid any) bool {
	n := k.Node(name)
	return n != nil && any(n.UID) == uid
}

func (k *Cluster) unready(name string, uid any) {
	if !k.same(name, uid) || !k.off[name] {
		return
	}
	k.setReady(name, corev1.ConditionUnknown, "")
	for _, p := range k.Pods(On(name)) {
		k.setPod(p, func(p *corev1.Pod) { setPodReady(p, corev1.ConditionFalse) })
	}
	k.scheduler.After(tolerated, "toleration of "+name, func() {
		if n := k.Node(name); k.same(name, uid) && k.off[name] && n != nil {
			for _, p := range k.Pods(On(name)) {
				if !isDaemon(p) {
					k.stop(p, nil)
				}
			}
		}
	})
}

// PowerOn brings a node back after a reboot or a stop, with another boot id. Its pods start
// again.
func (k *Cluster) PowerOn(name, bootID string) {
	if k.Node(name) == nil {
		return
	}
	delete(k.off, name)
	k.setReady(name, corev1.ConditionTrue, bootID)
	for _, p := range k.Pods(On(name)) {
		if p.DeletionTimestamp != nil {
			k.Remove(KeyOf(p)) // the kubelet finds the pod stopped
			continue
		}
		k.start(p, 2*time.Second)
	}
}

// RemoveNode deletes a node, as the cloud controller does once its instance is gone. Its pods
// follow.
func (k *Cluster) RemoveNode(name string) {
	n := k.Node(name)
	if n == nil {
		return
	}
	pods := k.Pods(On(name))
	k.Remove(Key{Kind: "Node", Name: name})
	k.scheduler.After(k.scheduler.Between(5*time.Second, 40*time.Second), "pods of "+name, func() {
		for _, p := range pods {
			if now, ok := k.Get(KeyOf(p)).(*corev1.Pod); ok && now.UID == p.UID {
				k.Remove(KeyOf(p))
			}
		}
	})
}

func (k *Cluster) setReady(name string, status corev1.ConditionStatus, bootID string) {
	n := k.Node(name).DeepCopy()
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			n.Status.Conditions[i].Status = status
		}
	}
	if bootID != "" {
		n.Status.NodeInfo.BootID = bootID
	}
	k.Put(n)
}

func (k *Cluster) setPod(p *corev1.Pod, change func(*corev1.Pod)) {
	now, ok := k.Get(KeyOf(p)).(*corev1.Pod)
	if !ok || now.UID != p.UID {
		return
	}
	next := now.DeepCopy()
	change(next)
	k.Put(next)
}

// SetPodReady sets whether a pod is Ready, as a readiness probe does.
func (k *Cluster) SetPodReady(p *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	k.setPod(p, func(p *corev1.Pod) { setPodReady(p, status) })
}

func setPodReady(p *corev1.Pod, status corev1.ConditionStatus) {
	others := slices.DeleteFunc(slices.Clone(p.Status.Conditions), func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	p.Status.Conditions = append(others, corev1.PodCondition{Type: corev1.PodReady, Status: status})
}

// start simulates the kubelet: the pod is Ready after some time.
func (k *Cluster) start(p *corev1.Pod, after time.Duration) {
	k.scheduler.After(after, "kubelet", func() {
		k.setPod(p, func(p *corev1.Pod) {
			if k.off[p.Spec.NodeName] || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded {
				return
			}
			at := metav1.NewTime(k.Now().Truncate(time.Second))
			p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &at
			setPodReady(p, corev1.ConditionTrue)
		})
	})
}

// changed makes kubelets and controllers react to a change.
func (k *Cluster) changed(c Change) {
	was, _ := c.Old.(*corev1.Pod)
	is, _ := c.New.(*corev1.Pod)
	if was == nil && is == nil {
		return
	}
	if is != nil && is.DeletionTimestamp != nil &&
		(was == nil || was.DeletionTimestamp == nil || !was.DeletionTimestamp.Equal(is.DeletionTimestamp)) {
		k.terminate(is)
	}
	pod := is
	if pod == nil {
		pod = was
	}
	k.recount(pod)
	k.later("app of "+pod.Labels["app"], k.scheduler.Between(20*time.Millisecond, 800*time.Millisecond), func() { k.replicate(pod.Labels["app"]) })
}

// later does something soon, once for all changes that request it.
func (k *Cluster) later(name string, after time.Duration, do func()) {
	key := Key{Kind: "later", Name: name}
	if k.dirty[key] {
		return
	}
	k.dirty[key] = true
	k.scheduler.After(after, name, func() {
		delete(k.dirty, key)
		do()
	})
}

// terminate simulates the kubelet: it stops the pod, and kills it at the end of its grace. The
// object is deleted once its finalizers are removed.
func (k *Cluster) terminate(p *corev1.Pod) {
	app := k.app(p.Labels["app"])
	left, hangs := p.DeletionTimestamp.Sub(k.Now()), time.Duration(0)
	if app != nil {
		hangs = app.Hangs
		left = min(left, time.Duration(app.StopsIn*float64(time.Duration(app.Grace)*time.Second)))
	}
	k.scheduler.After(max(left, 100*time.Millisecond), "kubelet", func() {
		if now, ok := k.Get(KeyOf(p)).(*corev1.Pod); ok && now.UID == p.UID && !k.off[p.Spec.NodeName] && k.Node(p.Spec.NodeName) != nil {
			k.scheduler.After(hangs, "finalizer", func() { k.removeSame(p) })
		}
	})
}

func (k *Cluster) removeSame(p *corev1.Pod) {
	if now := k.Get(KeyOf(p)); now != nil && now.GetUID() == p.UID {
		k.Remove(KeyOf(p))
	}
}

func isDaemon(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet"
}
