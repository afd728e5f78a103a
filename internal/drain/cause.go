package drain

// Cause is why a verdict is as it is, in one CamelCase word. Programs read it; people read the sentence.
type Cause string

// The causes, by the rule that decides.
const (
	// CauseDaemonSet: its controller would put it back. CauseStatic: the kubelet runs it from a file.
	// CauseFinished: its containers have exited. CauseKept: the policy leaves it where it is.
	CauseDaemonSet Cause = "DaemonSet"
	CauseStatic    Cause = "Static"
	CauseFinished  Cause = "Finished"
	CauseKept      Cause = "KeptByPolicy"
	// CauseInstanceGone: nothing of it runs, and no kubelet can stop it.
	CauseInstanceGone Cause = "InstanceGone"
	// CauseGraceCut: it was asked to stop before, with a grace that outlasts the deadline.
	CauseGraceCut Cause = "GraceCut"
	// CauseTerminating: it was asked to stop before.
	CauseTerminating Cause = "Terminating"
	// CauseDoNotDisrupt: its annotation holds it.
	CauseDoNotDisrupt Cause = "DoNotDisrupt"
	// CauseReturned: it came back to the cordoned node.
	CauseReturned Cause = "Returned"
	// CauseLastCall: its last call has come, and something would still hold it.
	CauseLastCall Cause = "LastCall"
	// CauseGate: all pods of the node wait, for a replacement, a hook, a person or load balancers.
	CauseGate Cause = "Gate"
	// CauseOrder: pods of a lower rank leave first. CauseGang: its gang leaves together.
	CauseOrder Cause = "Order"
	CauseGang  Cause = "Gang"
	// CauseSuccessorNotReady: it was surged. CauseSuccessorFirst: it is surged, or will be.
	CauseSuccessorNotReady Cause = "SuccessorNotReady"
	CauseSuccessorFirst    Cause = "SuccessorFirst"
	// CauseDisruptionBudget: the Eviction API would refuse it now.
	CauseDisruptionBudget Cause = "DisruptionBudget"
	// CauseNothingHolds: it can go.
	CauseNothingHolds Cause = "NothingHolds"
)
