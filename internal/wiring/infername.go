package wiring

import "strings"

// Guess is the wiring of the cluster whose queue has a name, for who knows no more
// than that, and whether the name tells the cluster's own. It does not where it ends
// as the digest does that stands for what was changed in it, as the dots of kOps:
// then Cluster is what the queue's name says instead, for which the same queue would
// be made, and the names of the rules are those of the cluster that was changed.
// Cluster is empty where no `lifeboat wire` gave the name.
func Guess(queue, account, region string) (w Wiring, sure bool) {
	cluster, ok := strings.CutPrefix(queue, prefix)
	if !ok {
		return Wanted("", account, region), true
	}
	w = Wanted(cluster, account, region)
	base, digest, changed := cutDigest(cluster)
	if !changed {
		return w, true
	}
	w.DeadLetter.Name = digested(base, digest, deadLetterSuffix, maxQueueName)
	for i, r := range w.Rules {
		w.Rules[i].Name = digested(base, digest, "-"+r.Role, maxRuleName)
	}
	return w, false
}

// cutDigest cuts a digest off a cluster's name as a queue has it, if there can be
// one: a changed name has a hyphen for what was changed, or was cut to the full
// length.
func cutDigest(cluster string) (base, digest string, ok bool) {
	at := len(cluster) - digestLength
	if at < 1 || cluster[at] != '-' || strings.Trim(cluster[at+1:], "0123456789abcdef") != "" {
		return "", "", false
	}
	base, digest = cluster[:at], cluster[at:]
	return base, digest, strings.Contains(base, "-") || len(prefix)+len(cluster) == maxQueueName
}
