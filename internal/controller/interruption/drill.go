package interruption

// isDrill reports whether the notice that decides was sent as a test. Lifeboat then does
// nothing that cannot be undone: it deletes no NodeClaim, tells Karpenter nothing, and
// terminates no instance. Anyone who may send to the queue can send a drill.
func (p *pass) isDrill() bool { return p.decision.Notice.Drill }
