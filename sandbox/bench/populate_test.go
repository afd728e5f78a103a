package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodesInTransaction is how many nodes with their NodeClaims and pods are written at once: etcd takes
// 128 operations in a transaction (etcd documentation, --max-txn-ops).
const nodesInTransaction = 8

// populate writes the nodes from the given one on into etcd, with NodeClaims and pods, as the API server
// stores them. Creating them through the API server takes ten times as long. Pods and managed
// fields are copies of those of the first node.
func (r *rig) populate(from int) {
	r.Helper()
	var first corev1.Node
	var pending corev1.Pod
	r.must(r.admin.Get(r.Context(), client.ObjectKey{Name: nodeName(0)}, &first))
	r.must(r.admin.Get(r.Context(), client.ObjectKeyFromObject(r.podRef(0)), &pending))
	pending.Status = corev1.PodStatus{Phase: corev1.PodPending}
	etcd := etcdClient(filepath.Join(r.cluster.data, "etcd:0"))
	batches := (r.world.nodes - from + nodesInTransaction - 1) / nodesInTransaction
	r.each(batches, 4, func(ctx context.Context, batch int) error {
		var puts []etcdPut
		for i := from + batch*nodesInTransaction; i < min(from+(batch+1)*nodesInTransaction, r.world.nodes); i++ {
			more, err := r.stored(i, &first, &pending)
			if err != nil {
				return err
			}
			puts = append(puts, more...)
		}
		return putAll(ctx, etcd, puts)
	})
	r.until("the API server to see all nodes", time.Minute, func() (bool, error) {
		var list corev1.NodeList
		err := r.admin.List(r.Context(), &list, client.Limit(1))
		there := int64(len(list.Items))
		if list.RemainingItemCount != nil {
			there += *list.RemainingItemCount
		}
		return there == int64(r.world.nodes), errors.Join(err, fmt.Errorf("%d of %d nodes", there, r.world.nodes))
	})
}

// stored returns the i-th node with its NodeClaim and its pods, for etcd.
func (r *rig) stored(i int, first *corev1.Node, pending *corev1.Pod) ([]etcdPut, error) {
	now := metav1.Now()
	claim := nodeClaim(i, r.world.pool)
	claim.SetUID(uuid.NewUUID())
	claim.SetCreationTimestamp(now)
	claim.SetGeneration(1)
	claim.Object["status"] = nodeClaimStatus(i)
	text, err := claim.MarshalJSON()
	if err != nil {
		return nil, err
	}
	n := node(i, claim.GetUID())
	n.UID, n.CreationTimestamp, n.Generation, n.ManagedFields, n.Spec.Taints = uuid.NewUUID(), now, 1, first.ManagedFields, first.Spec.Taints
	r.world.nodeUIDs[i] = n.UID
	puts := []etcdPut{{[]byte("/registry/karpenter.sh/nodeclaims/" + claim.GetName()), text}}
	add := func(key string, o runtime.Object, kind string) error {
		o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		var stored bytes.Buffer
		err := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(o, &stored)
		puts = append(puts, etcdPut{[]byte("/registry/" + key), stored.Bytes()})
		return err
	}
	if err := add("minions/"+n.Name, n, "Node"); err != nil {
		return nil, err
	}
	for k := range r.world.podsPerNode {
		app, p := r.world.app(i, k), pending.DeepCopy()
		like := pod(i, k, app, r.world.owners[app])
		p.Name, p.Namespace, p.Labels, p.OwnerReferences = like.Name, like.Namespace, like.Labels, like.OwnerReferences
		p.UID, p.CreationTimestamp, p.Spec.NodeName = uuid.NewUUID(), now, like.Spec.NodeName
		if err := add("pods/"+p.Namespace+"/"+p.Name, p, "Pod"); err != nil {
			return nil, err
		}
	}
	return puts, nil
}

// etcdPut is a key with its new value.
type etcdPut struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// etcdClient sends requests to etcd's unix socket.
func etcdClient(socket string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 4}}
}

// putAll writes all keys in one transaction with etcd's JSON gateway (etcd documentation, "gRPC gateway").
func putAll(ctx context.Context, etcd *http.Client, puts []etcdPut) error {
	type operation struct {
		Put etcdPut `json:"requestPut"`
	}
	var transaction struct {
		Success []operation `json:"success"`
	}
	for _, put := range puts {
		transaction.Success = append(transaction.Success, operation{put})
	}
	body, err := json.Marshal(transaction)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := etcd.Do(request)
	if err != nil {
		return fmt.Errorf("writing to etcd: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"succeeded":true`)) {
		err = fmt.Errorf("status %d: %s", response.StatusCode, answer)
	}
	if err != nil {
		return fmt.Errorf("writing to etcd: %w", err)
	}
	return nil
}
