package machines

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kubelet has the kubelet settings in an instance's user data.
type kubelet struct {
	labels  map[string]string
	taints  []corev1.Taint // one for a key and an effect
	maxPods int            // 0: the maximum of its type
	// Reserved resources; the image has defaults for the others.
	kubeReserved, systemReserved corev1.ResourceList
}

// nodeConfig is the kubelet part of nodeadm's configuration on Amazon Linux 2023
// (awslabs/amazon-eks-ami, nodeadm API node.eks.aws/v1alpha1).
type nodeConfig struct {
	Spec struct {
		Kubelet struct {
			Config kubeletConfiguration `json:"config"`
			Flags  []string             `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

// kubeletConfiguration is the part that shows in a Node (Kubernetes reference,
// kubelet.config.k8s.io/v1beta1).
type kubeletConfiguration struct {
	RegisterWithTaints []corev1.Taint    `json:"registerWithTaints"`
	MaxPods            int               `json:"maxPods"`
	KubeReserved       map[string]string `json:"kubeReserved"`
	SystemReserved     map[string]string `json:"systemReserved"`
}

const (
	nodeConfigGroup = "node.eks.aws"
	nodeConfigType  = "application/" + nodeConfigGroup
)

// readUserData reads user data in base64, as EC2 returns it: a MIME message of scripts and
// NodeConfigs, one NodeConfig, or a script. If a setting is repeated, the last one counts.
func readUserData(encoded string) (kubelet, error) {
	k := kubelet{labels: map[string]string{}}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return k, fmt.Errorf("reading its user data: %w", err)
	}
	parts, err := userDataParts(string(text))
	if err != nil {
		return k, fmt.Errorf("reading its user data: %w", err)
	}
	for _, p := range parts {
		if p.isNodeConfig() {
			err = k.addNodeConfig(p.text)
		} else {
			err = k.addFlags(p.text)
		}
		if err != nil {
			return k, err
		}
	}
	return k, nil
}

// userDataPart is a document with its declared type, if any.
type userDataPart struct{ mediaType, text string }

func (p userDataPart) isNodeConfig() bool {
	if p.mediaType != "" {
		return p.mediaType == nodeConfigType
	}
	var doc metav1.TypeMeta
	err := yaml.Unmarshal([]byte(p.text), &doc)
	return err == nil && strings.HasPrefix(doc.APIVersion, nodeConfigGroup+"/")
}

// userDataParts splits a MIME message; any other text is one part.
func userDataParts(text string) ([]userDataPart, error) {
	start := strings.TrimLeft(text, " \t\r\n")
	if !strings.HasPrefix(start, "MIME-Version:") && !strings.HasPrefix(start, "Content-Type:") {
		return []userDataPart{{text: text}}, nil
	}
	message, err := mail.ReadMessage(strings.NewReader(start))
	if err != nil {
		return nil, fmt.Errorf("as a MIME message: %w", err)
	}
	mediaType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("as a MIME message: its Content-Type: %w", err)
	}
	if !strings.HasPrefix(mediaType, "multipart/") {
		body, err := decodeBody(message.Body, message.Header.Get("Content-Transfer-Encoding"))
		return []userDataPart{{mediaType, body}}, err
	}
	return multiParts(multipart.NewReader(message.Body, params["boundary"]))
}

func multiParts(reader *multipart.Reader) ([]userDataPart, error) {
	var parts []userDataPart
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("as a MIME message: %w", err)
		}
		mediaType, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			mediaType = "text/plain" // the default (RFC 2045)
		}
		body, err := decodeBody(part, part.Header.Get("Content-Transfer-Encoding"))
		if err != nil {
			return nil, err
		}
		parts = append(parts, userDataPart{mediaType, body})
	}
}

func decodeBody(body io.Reader, encoding string) (string, error) {
	if strings.EqualFold(encoding, "base64") {
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return "", fmt.Errorf("as a MIME message: reading a part: %w", err)
	}
	return string(text), nil
}

func (k *kubelet) addNodeConfig(text string) error {
	var doc nodeConfig
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return fmt.Errorf("reading the NodeConfig in its user data: %w", err)
	}
	config := doc.Spec.Kubelet.Config
	for _, t := range config.RegisterWithTaints {
		if err := checkTaint(t, t.ToString()); err != nil {
			return err
		}
		k.addTaint(t)
	}
	if config.MaxPods > 0 {
		k.maxPods = config.MaxPods
	}
	if err := keep(&k.kubeReserved, "kubeReserved", config.KubeReserved); err != nil {
		return err
	}
	if err := keep(&k.systemReserved, "systemReserved", config.SystemReserved); err != nil {
		return err
	}
	return k.addFlags(strings.Join(doc.Spec.Kubelet.Flags, "\n"))
}

func keep(in *corev1.ResourceList, field string, from map[string]string) error {
	for name, text := range from {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("%s in the NodeConfig: %s %q: write a quantity such as 100m or 300Mi", field, name, text)
		}
		if *in == nil {
			*in = corev1.ResourceList{}
		}
		(*in)[corev1.ResourceName(name)] = quantity
	}
	return nil
}

// Flags of the kubelet in scripts, plain or in bootstrap.sh --kubelet-extra-args, and in a
// NodeConfig's list.
var (
	labelsFlag  = regexp.MustCompile(`--node-labels[= ]["']?([^\s"']+)`)
	taintsFlag  = regexp.MustCompile(`--register-with-taints[= ]["']?([^\s"']+)`)
	maxPodsFlag = regexp.MustCompile(`--max-pods[= ]["']?([0-9]+)`)
)

func (k *kubelet) addFlags(text string) error {
	for _, value := range flagValues(labelsFlag, text) {
		if err := k.addLabels(value); err != nil {
			return err
		}
	}
	for _, value := range flagValues(taintsFlag, text) {
		if err := k.addTaints(value); err != nil {
			return err
		}
	}
	for _, value := range flagValues(maxPodsFlag, text) {
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("--max-pods in its user data: %w", err)
		}
		k.maxPods = n
	}
	return nil
}

func flagValues(flag *regexp.Regexp, text string) []string {
	var out []string
	for _, m := range flag.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// addLabels adds labels written as a=b,c=d.
func (k *kubelet) addLabels(text string) error {
	for _, item := range list(text) {
		key, value, ok := strings.Cut(item, "=")
		if !ok || key == "" {
			return fmt.Errorf("node label %q: write key=value", item)
		}
		k.labels[key] = value
	}
	return nil
}

// addTaints adds taints written as key=value:NoSchedule,….
func (k *kubelet) addTaints(text string) error {
	for _, item := range list(text) {
		left, effect, _ := strings.Cut(item, ":")
		key, value, _ := strings.Cut(left, "=")
		t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		if err := checkTaint(t, item); err != nil {
			return err
		}
		k.addTaint(t)
	}
	return nil
}

func (k *kubelet) addTaint(t corev1.Taint) {
	same := func(other corev1.Taint) bool { return other.MatchTaint(&t) }
	if i := slices.IndexFunc(k.taints, same); i >= 0 {
		k.taints[i] = t
		return
	}
	k.taints = append(k.taints, t)
}

func checkTaint(t corev1.Taint, text string) error {
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		if t.Key != "" {
			return nil
		}
	}
	return fmt.Errorf("node taint %q: write key=value:NoSchedule, PreferNoSchedule or NoExecute", text)
}
