package ec2

import (
	"testing"
	"time"
)

// Instances that a service launches have the service's own tags, which users cannot set.
func TestLaunchTemplate(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		template, err := w.CreateTemplate("web", "", "", TemplateData{ImageID: "ami-0abc", InstanceType: "c5.large", UserData: "Ym9vdA==", TagSpecifications: []TagSpecification{
			{ResourceType: "instance", Tags: []struct{ Key, Value string }{{"team", "a"}, {"Name", "web"}}},
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		subnet := w.Subnets()[2]
		in, ref, err := w.LaunchTemplate(TemplateLaunch{
			Template: TemplateRef{Name: "web", Version: "$Latest"}, SubnetID: subnet.ID, Tags: map[string]string{"team": "b"},
			SystemTags: map[string]string{"aws:autoscaling:groupName": "g"},
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "template", ref, TemplateRef{ID: template.ID, Name: "web", Version: "1"})
		same(t, "instance", []string{in.Type, in.Zone, in.UserData, string(in.State)}, []string{"c5.large", subnet.Zone, "Ym9vdA==", "pending"})
		want := map[string]string{
			"team": "b", "Name": "web", "aws:autoscaling:groupName": "g", "aws:ec2launchtemplate:id": template.ID, "aws:ec2launchtemplate:version": "1",
		}
		same(t, "tags", in.Tags, want)
		w.SetSystemTags(in.ID, nil, "aws:autoscaling:groupName", "team")
		delete(want, "aws:autoscaling:groupName")
		in, _ = w.Instance(in.ID)
		same(t, "without the service's, and with the user's", in.Tags, want)
		w.SetSystemTags(in.ID, map[string]string{"aws:autoscaling:groupName": "h"})
		in, _ = w.Instance(in.ID)
		same(t, "another's", in.Tags["aws:autoscaling:groupName"], "h")
		w.SetSystemTags("i-0123456789abcdef0", want)
		if _, _, err := w.LaunchTemplate(TemplateLaunch{Template: TemplateRef{Name: "none"}}); err == nil {
			t.Error("a template that is not there was launched")
		}
	})
}

// A hibernated machine resumes; a stopped machine boots.
func TestHibernate(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, nil)
		now := func() Instance { in, _ := w.Instance(id); return in }
		sleep := func(stop func([]string) ([]Transition, error)) (Instance, Instance, bool) {
			boot := now().BootID
			if _, err := stop([]string{id}); err != nil {
				t.Fatal(err)
			}
			w.pass(5 * time.Second)
			asleep := now()
			if _, err := w.Start([]string{id}); err != nil {
				t.Fatal(err)
			}
			w.pass(5 * time.Second)
			return asleep, now(), now().BootID == boot
		}
		asleep, awake, sameBoot := sleep(w.Hibernate)
		same(t, "hibernated", []any{asleep.State, asleep.Hibernated, asleep.StateReason.Code, awake.State, sameBoot},
			[]any{Stopped, true, "Client.UserInitiatedHibernate", Running, true})
		asleep, awake, sameBoot = sleep(w.Stop)
		same(t, "stopped", []any{asleep.State, asleep.Hibernated, asleep.StateReason.Code, awake.State, sameBoot},
			[]any{Stopped, false, "Client.UserInitiatedShutdown", Running, false})
		if _, err := w.Hibernate([]string{w.launch(t, &SpotOptions{})}); err == nil {
			t.Error("a one-time spot instance was hibernated")
		}
	})
}
