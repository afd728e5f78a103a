package interruption

// sparesInstance reports whether the notice that decides was sent as a test, and the person did
// not ask to end the instance. Lifeboat then does nothing that cannot be undone: it deletes no
// NodeClaim, tells Karpenter nothing, and terminates no instance.
func (p *pass) sparesInstance() bool {
	return p.decision.Notice.Drill && !p.decision.Notice.EndInstance
}
