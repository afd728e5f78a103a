package drain

import (
	"fmt"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// rank is a pod's place in the drain order: pods of a lower rank leave first.
type rank int

const (
	rankFirst rank = iota
	rankNormal
	rankLast
	rankCritical
	ranks
)

func rankOf(c *podState) rank {
	if isCritical(c.pod) {
		return rankCritical
	}
	if c.treatment != nil {
		switch c.treatment.Order {
		case v1alpha1.OrderFirst:
			return rankFirst
		case v1alpha1.OrderLast:
			return rankLast
		}
	}
	return rankNormal
}

// outOfOrder makes a pod wait for pods of lower ranks that are about to leave, because they may
// need it while they stop. Pods that something holds do not count, so nothing waits for them.
func outOfOrder(s *planContext, c *podState) (Verdict, bool) {
	going := 0
	for _, n := range s.going[:c.rank] {
		going += n
	}
	if going == 0 || !s.awaitsTurn(c) {
		return Verdict{}, false
	}
	v, ok := say(StepWaits, fmt.Sprintf("waits: %s (still leaving: %d)%s", c.afterWhom(), going, s.byItsTurn(c)))
	v.AwaitsOthers = true
	return v, ok
}

func (c *podState) afterWhom() string {
	switch c.rank {
	case rankCritical:
		return "it is critical, so it leaves after the ordinary pods"
	case rankLast:
		return fmt.Sprintf("its order is Last (%s), so it leaves after the others", c.treatment.title())
	}
	return "those whose order is First leave before it"
}
