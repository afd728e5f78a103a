package ec2

import (
	"encoding/base64"
	"strings"
	"testing"
)

// template creates a launch template and returns its name.
func (w *world) template(t *testing.T, change func(*TemplateData)) string {
	t.Helper()
	data := TemplateData{ImageID: ImageID(X86), UserData: "Ym9vdA==", SecurityGroupIDs: []string{defaultGroupID}}
	if change != nil {
		change(&data)
	}
	name := "pool/" + newID("t")
	if _, err := w.CreateTemplate(name, "", "", data, map[string]string{"eks:eks-cluster-name": "sandbox"}); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTemplateVersions(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		name := w.template(t, func(d *TemplateData) { d.InstanceType = "m5.large" })
		made, v, err := w.FindTemplate(TemplateRef{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "made", []any{made.Default, made.Latest(), v.Number, v.Data.InstanceType, made.Tags["eks:eks-cluster-name"]}, []any{1, 1, 1, "m5.large", "sandbox"})

		second, v2, err := w.AddTemplateVersion(TemplateRef{ID: made.ID}, "1", "bigger", TemplateData{InstanceType: "m5.xlarge"})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "second", []any{second.Default, second.Latest(), v2.Data.InstanceType, v2.Data.UserData}, []any{1, 2, "m5.xlarge", "Ym9vdA=="})
		number := func(version string) int {
			_, v, err := w.FindTemplate(TemplateRef{Name: name, Version: version})
			if err != nil {
				t.Fatal(err)
			}
			return v.Number
		}
		same(t, "versions", []int{number(""), number("$Default"), number("$Latest"), number("1")}, []int{1, 1, 2, 1})
		if _, err := w.SetDefaultVersion(TemplateRef{Name: name, Version: "2"}); err != nil {
			t.Fatal(err)
		}
		same(t, "default", number(""), 2)

		for version, want := range map[string]string{"2": "invalidParameterValue", "7": "launchTemplateVersionDoesNotExist"} {
			_, problem, err := w.DeleteTemplateVersion(TemplateRef{Name: name, Version: version})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "deleting version "+version, problem, want)
		}
		if _, problem, err := w.DeleteTemplateVersion(TemplateRef{Name: name, Version: "1"}); err != nil || problem != "" {
			t.Errorf("deleting version 1: %s %v", problem, err)
		}
		_, _, err = w.FindTemplate(TemplateRef{Name: name, Version: "1"})
		wantCode(t, err, "InvalidLaunchTemplateId.VersionNotFound")

		if _, err := w.DeleteTemplate(TemplateRef{ID: made.ID}); err != nil {
			t.Fatal(err)
		}
		same(t, "left", len(w.Templates()), 0)
		wantCode(t, w.CreateTags([]string{made.ID}, map[string]string{"a": ""}), "InvalidLaunchTemplateId.NotFound")
	})
}

func TestTemplateRejectsInvalidRequests(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		name := w.template(t, nil)
		create := func(name, token, userData string) error {
			_, err := w.CreateTemplate(name, "", token, TemplateData{UserData: userData}, nil)
			return err
		}
		find := func(ref TemplateRef) error {
			_, _, err := w.FindTemplate(ref)
			return err
		}
		if err := create("again", "once", ""); err != nil {
			t.Fatal(err)
		}
		if err := create("again", "once", ""); err != nil {
			t.Errorf("with the same token: %v", err)
		}
		long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", maxUserData+1)))
		for code, err := range map[string]error{
			"InvalidLaunchTemplateName.AlreadyExistsException": create(name, "", ""),
			"InvalidLaunchTemplateName.MalformedException":     create("a b", "", ""),
			"InvalidUserData.Malformed":                        create("long", "", long),
			"InvalidLaunchTemplateName.NotFoundException":      find(TemplateRef{Name: "none"}),
			"InvalidLaunchTemplateId.NotFound":                 find(TemplateRef{ID: "lt-0"}),
			"InvalidLaunchTemplateId.VersionNotFound":          find(TemplateRef{Name: name, Version: "2"}),
			"InvalidParameterValue":                            find(TemplateRef{Name: name, Version: "new"}),
			"InvalidParameterCombination":                      find(TemplateRef{Name: name, ID: "lt-0"}),
			"MissingParameter":                                 find(TemplateRef{}),
		} {
			wantCode(t, err, code)
		}
		wantCode(t, create("text", "", "#cloud-config"), "InvalidUserData.Malformed")
	})
}

func TestRequestOverridesTemplate(t *testing.T) {
	t.Parallel()
	tags := func(kind, key, value string) TagSpecification {
		spec := TagSpecification{ResourceType: kind}
		spec.Tags = append(spec.Tags, struct{ Key, Value string }{key, value})
		return spec
	}
	base := TemplateData{
		ImageID: "ami-1", InstanceType: "m5.large", UserData: "YQ==", KeyName: "k",
		NetworkInterfaces: []NetworkInterface{{SubnetID: "subnet-1", SecurityGroupIDs: []string{"sg-1"}}},
		TagSpecifications: []TagSpecification{tags("instance", "a", "template"), tags("instance", "b", "template")},
	}
	request := TemplateData{ImageID: "ami-2", TagSpecifications: []TagSpecification{tags("instance", "a", "request"), tags("volume", "v", "1")}}
	request.InstanceMarketOptions.MarketType = Spot
	input, err := request.over(base).launch()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "launch", []any{
		input.ImageID, input.Type, input.UserData, input.KeyName, input.SubnetID, input.SecurityGroupIDs, input.Tags, input.VolumeTags, input.Spot != nil,
	}, []any{
		"ami-2", "m5.large", "YQ==", "k", "subnet-1", []string{"sg-1"}, map[string]string{"a": "request", "b": "template"}, map[string]string{"v": "1"}, true,
	})
	same(t, "the template afterwards", len(base.TagSpecifications), 2)
	request.InstanceMarketOptions.SpotOptions.SpotInstanceType = "sometimes"
	_, err = request.launch()
	wantCode(t, err, "InvalidParameterValue")
}
