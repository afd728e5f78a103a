package awssetup

import "strings"

// InferFromQueueName returns the wiring that has this queue name. sure is false if
// the name ends like a digest: name then may have replaced characters of the
// cluster's name, such as the dots of kOps, and the original cannot be recovered. In
// that case Cluster comes from the queue's name, which yields the same queue, and the
// rules have the names of the changed cluster. Cluster is empty if `lifeboat aws`
// did not create the queue name.
func InferFromQueueName(queue, account, region string) (w Wiring, sure bool) {
	cluster, ok := strings.CutPrefix(queue, prefix)
	if !ok {
		return Desired("", account, region), true
	}
	w = Desired(cluster, account, region)
	base, digest, changed := cutDigest(cluster)
	if !changed {
		return w, true
	}
	w.DeadLetter.Name = nameWithDigest(base, digest, deadLetterSuffix, maxQueueName)
	for i, r := range w.Rules {
		w.Rules[i].Name = nameWithDigest(base, digest, "-"+r.Role, maxRuleName)
	}
	return w, false
}

// cutDigest splits a digest off a cluster's name as it appears in a queue name. A
// name has a digest only if a character was replaced by a hyphen, or if it was cut to
// the maximum length.
func cutDigest(cluster string) (base, digest string, ok bool) {
	at := len(cluster) - digestLength
	if at < 1 || cluster[at] != '-' || strings.Trim(cluster[at+1:], "0123456789abcdef") != "" {
		return "", "", false
	}
	base, digest = cluster[:at], cluster[at:]
	return base, digest, strings.Contains(base, "-") || len(prefix)+len(cluster) == maxQueueName
}
