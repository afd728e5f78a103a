package iam_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// random is what differs from run to run in answers.
var random = regexp.MustCompile(`(<(?:RequestId|InstanceProfileId|RoleId|CreateDate)>)[^<]+(<)`)

// caller returns what calls IAM with a form, and gives status and body without what is
// random. IAM is global: its clients sign for us-east-1.
func caller(t *testing.T) (*emulator.Server, func(form string) (int, string)) {
	server, base := emulatortest.Serve(t, emulator.Options{Region: "eu-west-1"})
	return server, func(form string) (int, string) {
		t.Helper()
		status, body := emulatortest.Call{Service: "iam", Body: form + "&Version=2010-05-08"}.Do(t, base)
		return status, random.ReplaceAllString(body, "$1…$2")
	}
}

const (
	head     = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	xmlns    = ` xmlns="https://iam.amazonaws.com/doc/2010-05-08/"`
	metadata = `<ResponseMetadata><RequestId>…</RequestId></ResponseMetadata>`
)

func answer(action, result string) string {
	if result != "" {
		result = "<" + action + "Result>" + result + "</" + action + "Result>"
	}
	return head + "<" + action + "Response" + xmlns + ">" + result + metadata + "</" + action + "Response>"
}

func refusal(code, message string) string {
	return head + "<ErrorResponse" + xmlns + "><Error><Type>Sender</Type><Code>" + code + "</Code><Message>" + message +
		"</Message></Error><RequestId>…</RequestId></ErrorResponse>"
}

func profile(roles, tags string) string {
	return `<Path>/karpenter/us/</Path><InstanceProfileName>prod_1</InstanceProfileName><InstanceProfileId>…</InstanceProfileId>` +
		`<Arn>arn:aws:iam::123456789012:instance-profile/karpenter/us/prod_1</Arn><CreateDate>…</CreateDate>` +
		`<Roles>` + roles + `</Roles><Tags>` + tags + `</Tags>`
}

// The calls are Karpenter's, over the life of a profile.
func TestInstanceProfiles(t *testing.T) {
	t.Parallel()
	server, call := caller(t)
	if err := server.States.IAM.PutRole("nodes"); err != nil {
		t.Fatal(err)
	}
	const (
		role = `<member><Path>/</Path><RoleName>nodes</RoleName><RoleId>…</RoleId><Arn>arn:aws:iam::123456789012:role/nodes</Arn><CreateDate>…</CreateDate>` +
			`<AssumeRolePolicyDocument>%7B%22Version%22:%222012-10-17%22%2C%22Statement%22:%5B%7B%22Effect%22:%22Allow%22%2C` +
			`%22Principal%22:%7B%22Service%22:%22ec2.amazonaws.com%22%7D%2C%22Action%22:%22sts:AssumeRole%22%7D%5D%7D</AssumeRolePolicyDocument>` +
			`<MaxSessionDuration>3600</MaxSessionDuration></member>`
		tag   = `<member><Key>team</Key><Value>a &amp; b</Value></member>`
		named = "&InstanceProfileName=prod_1"
	)
	for _, step := range []struct {
		name, form string
		status     int
		want       string
	}{
		{"not there", "Action=GetInstanceProfile" + named, 404, refusal("NoSuchEntity", "Instance Profile prod_1 cannot be found.")},
		{"created", "Action=CreateInstanceProfile" + named + "&Path=/karpenter/us/&Tags.member.1.Key=team&Tags.member.1.Value=a+%26+b", 200,
			answer("CreateInstanceProfile", "<InstanceProfile>"+profile("", tag)+"</InstanceProfile>")},
		{"created again", "Action=CreateInstanceProfile" + named, 409, refusal("EntityAlreadyExists", "Instance Profile prod_1 already exists.")},
		{"a role that is missing", "Action=AddRoleToInstanceProfile&RoleName=none" + named, 404, refusal("NoSuchEntity", "The role with name none cannot be found.")},
		{"its role", "Action=AddRoleToInstanceProfile&RoleName=nodes" + named, 200, answer("AddRoleToInstanceProfile", "")},
		{"a second role", "Action=AddRoleToInstanceProfile&RoleName=nodes" + named, 409,
			refusal("LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")},
		{"there", "Action=GetInstanceProfile" + named, 200, answer("GetInstanceProfile", "<InstanceProfile>"+profile(role, tag)+"</InstanceProfile>")},
		{"another tag", "Action=TagInstanceProfile&Tags.member.1.Key=a&Tags.member.1.Value=1" + named, 200, answer("TagInstanceProfile", "")},
		{"one less", "Action=UntagInstanceProfile&TagKeys.member.1=a" + named, 200, answer("UntagInstanceProfile", "")},
		{"its tags", "Action=ListInstanceProfileTags" + named, 200, answer("ListInstanceProfileTags", "<Tags>"+tag+"</Tags><IsTruncated>false</IsTruncated>")},
		{"listed without tags", "Action=ListInstanceProfiles&PathPrefix=/karpenter/", 200,
			answer("ListInstanceProfiles", "<InstanceProfiles><member>"+profile(role, "")+"</member></InstanceProfiles><IsTruncated>false</IsTruncated>")},
		{"none below another path", "Action=ListInstanceProfiles&PathPrefix=/other/", 200,
			answer("ListInstanceProfiles", "<InstanceProfiles></InstanceProfiles><IsTruncated>false</IsTruncated>")},
		{"deleted with its role", "Action=DeleteInstanceProfile" + named, 409,
			refusal("DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")},
		{"its role deleted", "Action=DeleteRole&RoleName=nodes", 409,
			refusal("DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")},
		{"without its role", "Action=RemoveRoleFromInstanceProfile&RoleName=nodes" + named, 200, answer("RemoveRoleFromInstanceProfile", "")},
		{"without it again", "Action=RemoveRoleFromInstanceProfile&RoleName=nodes" + named, 404,
			refusal("NoSuchEntity", "The role with name nodes cannot be found in instance profile prod_1.")},
		{"deleted", "Action=DeleteInstanceProfile" + named, 200, answer("DeleteInstanceProfile", "")},
		{"deleted again", "Action=DeleteInstanceProfile" + named, 404, refusal("NoSuchEntity", "Instance Profile prod_1 cannot be found.")},
	} {
		status, body := call(step.form)
		if diff := cmp.Diff(step.want, body); diff != "" || status != step.status {
			t.Errorf("%s: status %d, want %d; body (-want +got):\n%s", step.name, status, step.status, diff)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	_, call := caller(t)
	policy := "&AssumeRolePolicyDocument=" + url.QueryEscape(`{"Version":"2012-10-17"}`)
	for _, step := range []struct {
		name, form string
		status     int
		want       string
	}{
		{"not there", "Action=GetRole&RoleName=r", 404, "<Message>The role with name r cannot be found.</Message>"},
		{"without a policy", "Action=CreateRole&RoleName=r", 400, "<Code>MalformedPolicyDocument</Code>"},
		{"with a wrong name", "Action=CreateRole&RoleName=a/b" + policy, 400, "Value &#39;a/b&#39; at &#39;roleName&#39;"},
		{"with a wrong path", "Action=CreateRole&RoleName=r&Path=a" + policy, 400, "<Code>ValidationError</Code>"},
		{"created", "Action=CreateRole&RoleName=r&Path=/team/" + policy, 200, "<Arn>arn:aws:iam::123456789012:role/team/r</Arn>"},
		{"created again", "Action=CreateRole&RoleName=r" + policy, 409, "<Message>Role with name r already exists.</Message>"},
		{"there", "Action=GetRole&RoleName=r", 200, "<AssumeRolePolicyDocument>%7B%22Version%22:%222012-10-17%22%7D</AssumeRolePolicyDocument>"},
		{"its trust", "Action=UpdateAssumeRolePolicy&RoleName=r&PolicyDocument=%7B%7D", 200, "<UpdateAssumeRolePolicyResponse"},
		{"its trust with a wrong policy", "Action=UpdateAssumeRolePolicy&RoleName=r&PolicyDocument=a", 400, "<Code>MalformedPolicyDocument</Code>"},
		{"the trust of none", "Action=UpdateAssumeRolePolicy&RoleName=none&PolicyDocument=%7B%7D", 404, "<Code>NoSuchEntity</Code>"},
		{"there with its new trust", "Action=GetRole&RoleName=r", 200, "<AssumeRolePolicyDocument>%7B%7D</AssumeRolePolicyDocument>"},
		{"deleted", "Action=DeleteRole&RoleName=r", 200, "<DeleteRoleResponse"},
	} {
		if status, body := call(step.form); status != step.status || !strings.Contains(body, step.want) {
			t.Errorf("%s: status %d, want %d and %s:\n%s", step.name, status, step.status, step.want, body)
		}
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	server, call := caller(t)
	for i := range 5 {
		if _, err := server.States.IAM.CreateProfile(fmt.Sprint("p", i), "", nil); err != nil {
			t.Fatal(err)
		}
	}
	name, marker := regexp.MustCompile(`<InstanceProfileName>(\w+)<`), regexp.MustCompile(`<Marker>([^<]+)<`)
	var got []string
	for form := "Action=ListInstanceProfiles&MaxItems=2"; ; {
		_, body := call(form)
		for _, m := range name.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		got = append(got, "|")
		next := marker.FindStringSubmatch(body)
		if more := strings.Contains(body, "<IsTruncated>true</IsTruncated>"); more != (next != nil) {
			t.Fatalf("truncated is %v, but: %s", more, body)
		}
		if next == nil {
			break
		}
		form = "Action=ListInstanceProfiles&MaxItems=2&Marker=" + url.QueryEscape(next[1])
	}
	if diff := cmp.Diff("p0 p1 | p2 p3 | p4 |", strings.Join(got, " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, form := range []string{"MaxItems=0", "Marker=nonsense", "PathPrefix=karpenter"} {
		if status, body := call("Action=ListInstanceProfiles&" + form); status != 400 || !strings.Contains(body, "ValidationError") {
			t.Errorf("%s: status %d: %s", form, status, body)
		}
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	server, call := caller(t)
	server.Gate.Deny("iam", "GetInstanceProfile")
	const denied = "User: arn:aws:iam::123456789012:user/lifeboat is not authorized to perform: iam:GetInstanceProfile on resource: " +
		"arn:aws:iam::123456789012:instance-profile/p because no identity-based policy allows the iam:GetInstanceProfile action"
	if status, body := call("Action=GetInstanceProfile&InstanceProfileName=p"); status != 403 || body != refusal("AccessDenied", denied) {
		t.Errorf("denied: status %d: %s", status, body)
	}
	server.Gate.Throttle("iam", "ListInstanceProfiles", 1)
	if status, body := call("Action=ListInstanceProfiles"); status != 400 || body != refusal("Throttling", "Rate exceeded") {
		t.Errorf("throttled: status %d: %s", status, body)
	}
	if status, _ := call("Action=ListInstanceProfiles"); status != 200 || server.Gate.Calls("iam", "ListInstanceProfiles") != 2 {
		t.Errorf("after the one: status %d", status)
	}
}

func TestRolePoliciesAreKeptAndChecked(t *testing.T) {
	t.Parallel()
	server, call := caller(t)
	if err := server.States.IAM.PutRole("r"); err != nil {
		t.Fatal(err)
	}
	const document = `{"Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"*"}}`
	long := `{"Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"` + strings.Repeat("a", 10240) + `"}}`
	for _, step := range []struct {
		action, role, document string
		status                 int
		part                   string
	}{
		{"GetRolePolicy", "r", "", 404, "NoSuchEntity"},
		{"PutRolePolicy", "other", document, 404, "NoSuchEntity"},
		{"PutRolePolicy", "r", `{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}}`, 400, "MalformedPolicyDocument"},
		{"PutRolePolicy", "r", long, 409, "LimitExceeded"},
		{"PutRolePolicy", "r", document, 200, ""},
		{"GetRolePolicy", "r", "", 200, url.PathEscape(document)},
		{"DeleteRole", "r", "", 409, "DeleteConflict"},
		{"DeleteRolePolicy", "r", "", 200, ""},
		{"DeleteRolePolicy", "r", "", 404, "NoSuchEntity"},
		{"DeleteRole", "r", "", 200, ""},
	} {
		form := url.Values{"Action": {step.action}, "RoleName": {step.role}, "PolicyName": {"p"}, "PolicyDocument": {step.document}}
		if status, body := call(form.Encode()); status != step.status || !strings.Contains(body, step.part) {
			t.Errorf("%s of %s: %d %s, want %d with %s", step.action, step.role, status, body, step.status, step.part)
		}
	}
}
