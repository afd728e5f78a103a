package bench

import (
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// requests counts the requests that the API server has answered so far, by verb
// and resource, and those that it was too busy for or a budget refused apart. A
// watch counts when it ends.
func (r *rig) requests() map[string]int {
	r.Helper()
	kube, err := kubernetes.NewForConfig(r.cluster.RESTConfig())
	r.must(err)
	text, err := kube.RESTClient().Get().AbsPath("/metrics").Stream(r.Context())
	r.must(err)
	defer text.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	r.must(err)
	kinds := map[string]int{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		of := map[string]string{}
		for _, label := range m.GetLabel() {
			of[label.GetName()] = label.GetValue()
		}
		kind := of["verb"] + "-" + of["resource"]
		if of["subresource"] != "" {
			kind += "-" + of["subresource"]
		}
		if code := of["code"]; code == "429" {
			kind += "-refused"
		}
		kinds[kind] += int(m.GetCounter().GetValue())
	}
	return kinds
}

// writes is how many requests that write the API server has answered so far.
func (r *rig) writes() int {
	r.Helper()
	sum := 0
	for kind, n := range r.requests() {
		verb, resource, _ := strings.Cut(kind, "-")
		if (verb == "POST" || verb == "PATCH" || verb == "PUT") && resource != "leases" {
			sum += n
		}
	}
	return sum
}
