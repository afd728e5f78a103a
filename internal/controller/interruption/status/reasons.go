package status

import "github.com/lifeboat-dev/lifeboat/api/v1beta1"

// reasonTraits are what the writer of the status has to know about the reason of an event.
type reasonTraits struct {
	// transitional events are found again by every later pass, because it compares the
	// written status with the caches. They need not be written at once.
	transitional bool
	// warning is the type of the Kubernetes Event; else it is Normal.
	warning bool
	// ofNode is set where the Kubernetes Event is about the node; else it is about the pod or
	// the Interruption.
	ofNode bool
}

// reasons lists the reasons that have a trait.
var reasons = map[string]reasonTraits{
	v1beta1.ReasonNoticeReceived:  {transitional: true, warning: true, ofNode: true},
	v1beta1.ReasonPodTerminated:   {transitional: true},
	v1beta1.ReasonEvictionBlocked: {transitional: true},

	v1beta1.ReasonPodLost:                 {warning: true, ofNode: true},
	v1beta1.ReasonLifecycleHookNotManaged: {warning: true, ofNode: true},
	v1beta1.ReasonProtectionOverridden:    {warning: true},
	v1beta1.ReasonHookFailed:              {warning: true},
	v1beta1.ReasonNotifyFailed:            {warning: true},
	v1beta1.ReasonDeregistrationUnknown:   {warning: true},
	v1beta1.ReasonDeregistrationTimedOut:  {warning: true},
	v1beta1.ReasonReplacementFailed:       {warning: true},
	v1beta1.ReasonNodeConflict:            {warning: true},
	v1beta1.ReasonContradicted:            {warning: true},
	v1beta1.ReasonUnconfirmed:             {warning: true},

	v1beta1.ReasonMarkedAtRisk:           {ofNode: true},
	v1beta1.ReasonCordoned:               {ofNode: true},
	v1beta1.ReasonDrained:                {ofNode: true},
	v1beta1.ReasonNodeRestored:           {ofNode: true},
	v1beta1.ReasonPostponed:              {ofNode: true},
	v1beta1.ReasonTerminated:             {ofNode: true},
	v1beta1.ReasonNodeClaimDeleted:       {ofNode: true},
	v1beta1.ReasonDetached:               {ofNode: true},
	v1beta1.ReasonLifecycleHookPending:   {ofNode: true},
	v1beta1.ReasonLifecycleActionSent:    {ofNode: true},
	v1beta1.ReasonLifecycleHookCompleted: {ofNode: true},
}
