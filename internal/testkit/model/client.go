package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"reflect"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client reads from its process's caches, or from the API server if it is Live, and writes to
// the API server.
type Client struct {
	process *Process
	live    bool
}

var (
	_ client.Client       = (*Client)(nil)
	_ client.FieldIndexer = (*Client)(nil)
)

// Client returns the client that reads from the caches.
func (p *Process) Client() *Client { return &Client{process: p} }

// Live returns the client that reads from the API server.
func (p *Process) Live() *Client { return &Client{process: p, live: true} }

// IndexField adds an index for lists from a cache.
func (c *Client) IndexField(_ context.Context, _ client.Object, name string, values client.IndexerFunc) error {
	c.process.indexes[name] = values
	return nil
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, k client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	key := Key{KindOf(into), k.Namespace, k.Name}
	if !c.live {
		v := c.process.views[key.Kind]
		if v == nil {
			return fmt.Errorf("%s is not cached", key.Kind)
		}
		return fill(into, v.objects[key], key)
	}
	return c.process.request(ctx, &Request{Verb: "get", Key: key, carryOut: func() error {
		return fill(into, c.process.Server.Get(key), key)
	}})
}

func fill(into, from client.Object, k Key) error {
	if from == nil {
		return apierrors.NewNotFound(k.resource(), k.Name)
	}
	if partial, ok := into.(*metav1.PartialObjectMetadata); ok {
		return metadataOf(clone(from), partial)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(clone(from)).Elem())
	return nil
}

// metadataOf copies the metadata of an object.
func metadataOf(from client.Object, into *metav1.PartialObjectMetadata) error {
	holder, ok := from.(metav1.ObjectMetaAccessor)
	if !ok {
		return fmt.Errorf("%T has no metadata", from)
	}
	meta, ok := holder.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return fmt.Errorf("%T keeps its metadata otherwise", from)
	}
	into.ObjectMeta = *meta
	return nil
}

// List reads all objects of a kind that the options select, by name.
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	kind := KindOf(list)
	if !c.live {
		v := c.process.views[kind]
		if v == nil {
			return fmt.Errorf("%s is not cached", kind)
		}
		var all []client.Object
		for _, object := range v.objects {
			all = append(all, object)
		}
		return c.fillList(list, all, &o)
	}
	return c.process.request(ctx, &Request{Verb: "list", Key: Key{Kind: kind}, carryOut: func() error {
		var all []client.Object
		c.process.Server.Each(kind, func(object client.Object) { all = append(all, object) })
		return c.fillList(list, all, &o)
	}})
}

func (c *Client) fillList(list client.ObjectList, all []client.Object, o *client.ListOptions) error {
	var only []client.Object
	for _, object := range all {
		fits, err := c.fits(object, o)
		if err != nil {
			return err
		}
		if fits {
			only = append(only, object)
		}
	}
	slices.SortFunc(only, byName)
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	filled := reflect.MakeSlice(items.Type(), 0, len(only))
	for _, object := range only {
		if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
			object = clone(object)
		}
		filled = reflect.Append(filled, reflect.ValueOf(object).Elem())
	}
	items.Set(filled)
	return nil
}

func byName(a, b client.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func (c *Client) fits(o client.Object, opts *client.ListOptions) (bool, error) {
	if opts.Namespace != "" && o.GetNamespace() != opts.Namespace {
		return false, nil
	}
	if opts.LabelSelector != nil && !opts.LabelSelector.Matches(labelSet(o.GetLabels())) {
		return false, nil
	}
	if opts.FieldSelector == nil {
		return true, nil
	}
	for _, r := range opts.FieldSelector.Requirements() {
		fits, err := c.fitsField(o, r)
		if !fits || err != nil {
			return false, err
		}
	}
	return true, nil
}

// fitsField selects by an index, or by the field that the API server supports: a pod's node.
func (c *Client) fitsField(o client.Object, r fields.Requirement) (bool, error) {
	if values := c.process.indexes[r.Field]; values != nil {
		return slices.Contains(values(o), r.Value), nil
	}
	if r.Field == "spec.nodeName" && KindOf(o) == "Pod" {
		return field(o, "Spec").FieldByName("NodeName").String() == r.Value, nil
	}
	return false, fmt.Errorf("no index %q of %s", r.Field, KindOf(o))
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	return c.process.request(ctx, &Request{Verb: "create", Key: KeyOf(o), Wanted: o, carryOut: func() error {
		made, err := c.process.Server.Create(o)
		if err != nil {
			return err
		}
		return fill(o, made, KeyOf(o))
	}})
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	stop := Stop{Grace: options.GracePeriodSeconds}
	if p := options.Preconditions; p != nil {
		stop.UID, stop.Version = p.UID, p.ResourceVersion
	}
	k := KeyOf(o)
	return c.process.request(ctx, &Request{Verb: "delete", Key: k, Stop: stop, carryOut: func() error {
		return c.process.Server.Delete(k, stop)
	}})
}

// Patch applies a patch.
func (c *Client) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.patch(ctx, "", o, patch)
}

func (c *Client) patch(ctx context.Context, sub string, o client.Object, patch client.Patch) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	k := KeyOf(o)
	return c.process.request(ctx, &Request{Verb: "patch", Key: k, Sub: sub, Wanted: o, carryOut: func() error {
		now, err := c.process.Server.Patch(k, sub, data)
		if err != nil {
			return err
		}
		return fill(o, now, k)
	}})
}

// errUnused is the error of verbs that the product must not use.
var errUnused = errors.New("the product does not use this verb")

// Update is not used.
func (c *Client) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errUnused
}

// DeleteAllOf is not used.
func (c *Client) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errUnused
}

// Apply is not used.
func (c *Client) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errUnused
}

// Status writes status.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource returns the client of a subresource.
func (c *Client) SubResource(name string) client.SubResourceClient { return &sub{c, name} }

// Scheme is not supported.
func (c *Client) Scheme() *runtime.Scheme { return nil }

// RESTMapper is not supported.
func (c *Client) RESTMapper() meta.RESTMapper { return nil }

// GroupVersionKindFor is not supported.
func (c *Client) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, errUnused
}

// IsObjectNamespaced is not supported.
func (c *Client) IsObjectNamespaced(runtime.Object) (bool, error) { return false, errUnused }

// sub is the client of a subresource.
type sub struct {
	*Client
	name string
}

// Get is not used.
func (s *sub) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errUnused
}

// Create evicts a pod.
func (s *sub) Create(ctx context.Context, o, body client.Object, _ ...client.SubResourceCreateOption) error {
	eviction, ok := body.(*policyv1.Eviction)
	if s.name != "eviction" || !ok {
		return errUnused
	}
	var stop Stop
	if d := eviction.DeleteOptions; d != nil {
		stop.Grace = d.GracePeriodSeconds
		if d.Preconditions != nil {
			stop.UID, stop.Version = d.Preconditions.UID, d.Preconditions.ResourceVersion
		}
	}
	k := KeyOf(o)
	return s.process.request(ctx, &Request{Verb: "evict", Key: k, Stop: stop, carryOut: func() error {
		return s.process.Server.Evict(k, stop)
	}})
}

// Update is not used.
func (s *sub) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errUnused
}

// Patch applies a patch to the subresource.
func (s *sub) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.patch(ctx, s.name, o, patch)
}

// Apply is not used.
func (s *sub) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errUnused
}

type labelSet map[string]string

func (l labelSet) Has(label string) bool              { _, ok := l[label]; return ok }
func (l labelSet) Get(label string) string            { return l[label] }
func (l labelSet) Lookup(label string) (string, bool) { v, ok := l[label]; return v, ok }
