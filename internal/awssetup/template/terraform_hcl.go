package template

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template/tfconfig"
)

// hclBlock matches a block of Terraform's HCL.
var hclBlock = regexp.MustCompile(`(?m)^\s*(resource|data|module|provider|variable|output)\s+"[^"]+"(\s+"[^"]+")?\s*\{|^\s*(terraform|locals)\s*\{`)

// isHCL reports whether a file has HCL, by its name or by its content.
func isHCL(f File) bool {
	if tfconfig.Is(f.Name) {
		return true
	}
	trimmed := bytes.TrimSpace(f.Data)
	return !f.Found && path.Ext(f.Name) == "" && len(trimmed) > 0 && trimmed[0] != '{' && hclBlock.Match(f.Data)
}

// hcl reads the Terraform configurations among the files. It returns the number of
// objects by file.
func (b *builder) hcl(files []File) (map[string]int, error) {
	objects, configuration, explicit := map[string]int{}, map[string][]byte{}, map[string][]byte{}
	for _, f := range files {
		name := filepath.ToSlash(filepath.Clean(f.Name))
		switch {
		case !isHCL(f):
		case !tfconfig.Is(f.Name):
			configuration["stdin.tf"] = f.Data
		case strings.HasSuffix(name, ".tfvars") && !f.Found:
			explicit[name] = f.Data // as with -var-file
		case strings.HasSuffix(name, ".tfvars") && path.Base(name) != "terraform.tfvars" && !strings.HasSuffix(name, ".auto.tfvars"):
		default:
			configuration[name] = f.Data
		}
	}
	before := b.objects
	for _, dir := range tfconfig.Roots(configuration) {
		if err := b.configuration(dir, configuration, explicit); err != nil {
			return nil, fmt.Errorf("reading %s: %w", dir, err)
		}
	}
	for _, f := range files {
		if isHCL(f) {
			objects[f.Name] = b.objects - before + len(b.out.Unread)
		}
	}
	return objects, nil
}

// configuration reads the configuration of a directory.
func (b *builder) configuration(dir string, files, explicit map[string][]byte) error {
	m := newModule(b, dir)
	m.evaluated = true
	own := map[string][]byte{}
	for name, data := range files {
		own[name] = data
	}
	for name, data := range explicit {
		own[path.Join(dir, "given-"+path.Base(name))] = data
	}
	out := &tfconfig.Result{Resources: m.resources, Files: map[string]string{}}
	err := tfconfig.Evaluate(dir, own, tfconfig.Options{
		Variables: b.given.Parameters, Disk: b.given.Disk, Computed: m.computedByAWS,
		Region: func(region string) {
			if b.given.Region == "" && len(files) > 0 {
				b.given.Region, b.partition = region, snapshot.Partition(region)
			}
		},
	}, out)
	if err != nil {
		return err
	}
	m.files = out.Files
	for _, a := range out.Assumed {
		if relevant(a.Address) {
			on := symbol.Open(a.On)
			b.out.Unread = append(b.out.Unread, snapshot.Unread{
				From: dir + ", " + a.Address, Fix: symbol.Supply(on),
				What: "how many of it exist depends on values that the files do not define, and one was assumed: " + a.On,
			})
		}
	}
	if len(out.Missing) > 0 {
		b.out.Incomplete = true
		b.out.Unread = append(b.out.Unread, snapshot.Unread{
			From: dir, What: "these modules are not on disk: " + strings.Join(out.Missing, ", "),
			Fix: "run terraform init and give the directory; or give the output of terraform show -json",
		})
	}
	m.read()
	return nil
}

// relevant reports whether a resource or a module can be about wiring.
func relevant(address string) bool {
	switch kindOf(address) {
	case "aws_sqs_queue", "aws_sqs_queue_policy", "aws_cloudwatch_event_rule", "aws_cloudwatch_event_target", "data.aws_iam_policy_document",
		"aws_autoscaling_group", "aws_autoscaling_lifecycle_hook":
		return true
	}
	_, local := splitModule(address)
	return local == ""
}

// computedByAWS returns an attribute that the configuration does not contain.
func (m *module) computedByAWS(address, attribute string) any {
	if v, ok := m.placeData(withoutIndexes(address) + "." + attribute); ok {
		return v
	}
	return m.computed(address, attribute, 0)
}
