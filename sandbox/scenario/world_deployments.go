package scenario

import "fmt"

// Deployment records how many replicas the status of a Deployment calls available.
func (w *World) Deployment(name string, available int, gone bool) {
	if gone {
		delete(w.available, name)
		return
	}
	w.available[name] = available
}

// deploymentAvailable bounds the available replicas in the status of a Deployment, which
// dashboards, alerts and autoscalers read.
type deploymentAvailable struct {
	Name, Op string
	N        int
}

func (c deploymentAvailable) Holds(w *World) (bool, string) {
	n, ok := w.available[c.Name]
	if !ok {
		return false, "there is no Deployment " + c.Name
	}
	return compare(n, c.Op, c.N), fmt.Sprintf("available=%d", n)
}

func deploymentCondition(words []string) (Condition, error) {
	const example = "available>=3"
	if len(words) != 2 {
		return nil, fmt.Errorf("deployment goes with a name and a count, as in deployment web %s", example)
	}
	what, op, n, err := bound(words[1], example)
	if err == nil && what != "available" {
		err = fmt.Errorf("unknown count %q: write available, as in deployment web %s", what, example)
	}
	return deploymentAvailable{words[0], op, n}, err
}
