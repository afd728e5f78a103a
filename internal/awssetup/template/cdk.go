package template

import (
	"cmp"
	"path"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// cdkStack is what CDK's manifest says about the template of a stack.
type cdkStack struct{ name, account, region string }

// manifests reads the manifests of CDK's cloud assemblies (AWS CDK, package
// cloud-assembly-schema): they name the stacks and their environments.
func (b *builder) manifests(all []document) {
	b.cdk = map[string]cdkStack{}
	places := map[[2]string]bool{}
	for _, d := range all {
		if path.Base(d.file) != "manifest.json" || !isObject(d.root["artifacts"]) {
			continue
		}
		for id, v := range object(d.root["artifacts"]) {
			if file, stack, ok := stackOf(id, object(v)); ok {
				places[[2]string{stack.account, stack.region}] = true
				b.cdk[path.Join(path.Dir(d.file), file)] = stack
			}
		}
	}
	if len(places) > 1 {
		b.out.Unread = append(b.out.Unread, snapshot.Unread{
			From: "cdk.out", What: "its stacks are for several accounts or regions, and a rule sends only to a queue of its own region",
			Fix: "give the template of one region at a time: -f cdk.out/STACK.template.json --account ACCOUNT --region REGION",
		})
		return
	}
	for place := range places {
		if b.given.Account == "" {
			b.given.Account = place[0]
		}
		if b.given.Region == "" && place[1] != "" {
			b.given.Region, b.partition = place[1], snapshot.Partition(place[1])
		}
	}
}

// stackOf returns the stack of an artifact, and the file of its template.
func stackOf(id string, artifact map[string]any) (file string, stack cdkStack, ok bool) {
	properties := object(artifact["properties"])
	file = str(properties["templateFile"])
	stack.name = cmp.Or(str(properties["stackName"]), id)
	account, region, _ := strings.Cut(strings.TrimPrefix(str(artifact["environment"]), "aws://"), "/")
	if account != "unknown-account" {
		stack.account = account
	}
	if region != "unknown-region" {
		stack.region = region
	}
	return file, stack, str(artifact["type"]) == "aws:cloudformation:stack" && file != ""
}
