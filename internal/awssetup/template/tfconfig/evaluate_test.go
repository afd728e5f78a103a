package tfconfig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template/tfconfig"
)

// evaluate evaluates files in the directory "d".
func evaluate(t *testing.T, variables map[string]string, files map[string]string) *tfconfig.Result {
	t.Helper()
	out, err := tryEvaluate(variables, files)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryEvaluate(variables map[string]string, files map[string]string) (*tfconfig.Result, error) {
	data := map[string][]byte{}
	for name, text := range files {
		data["d/"+name] = []byte(text)
	}
	out := &tfconfig.Result{}
	err := tfconfig.Evaluate("d", data, tfconfig.Options{
		Variables: variables, Region: func(string) {},
		Computed: func(address, attribute string) any { return "<" + address + "." + attribute + ">" },
	}, out)
	return out, err
}

// Every expression has the value that Terraform gives it, or a symbol.
func TestExpressions(t *testing.T) {
	const given = `
variable "name" { default = "prod" }
variable "open" {}
variable "list" { default = ["a", "b"] }
variable "object" {
  type    = object({ a = optional(string, "x"), b = optional(number), c = string })
  default = { c = "y" }
}
variable "flag" {
  type    = bool
  default = "true"
}
locals {
  map   = { one = 1, two = "zwei" }
  loop  = local.loop2
  loop2 = local.loop
}
resource "r" "one" { name = "q" }
resource "r" "many" {
  for_each = toset(["x", "y"])
  name     = each.key
}
resource "r" "counted" { count = 2 }
`
	for expression, want := range map[string]string{
		`"a-${var.name}"`: `"a-prod"`, `var.list[1]`: `"b"`, `local.map.two`: `"zwei"`, `local.map["one"]`: `1`, `1 + 2 * 3`: `7`, `7 % 4`: `3`, `-2`: `-2`,
		`var.name == "prod" ? 1 : 2`: `1`, `!true`: `false`, `true && var.flag`: `true`, `3 > 2`: `true`, `null`: `null`, `var.object.a`: `"x"`, `var.object.b`: `null`,
		`[for v in var.list : upper(v)]`: `["A","B"]`, `{ for k, v in local.map : k => v if k != "one" }`: `{"two":"zwei"}`, `[for k, v in local.map : k]`: `["one","two"]`,
		`{ for v in ["a", "b", "a"] : v => 1... }`: `{"a":[1,1],"b":[1]}`, `var.list[*]`: `["a","b"]`, `r.many["x"].name`: `"x"`, `values(r.many)[*].name`: `["x","y"]`,
		`r.counted[*].arn`: `["<r.counted[0].arn>","<r.counted[1].arn>"]`, `r.one.name`: `"q"`, `r.one.arn`: `"<r.one.arn>"`, `r.one[*].name`: `["q"]`,
		`[for k, v in r.many : v.name]`:  `["x","y"]`,
		`jsonencode({ a = [1, "<&>"] })`: `"{\"a\":[1,\"<&>\"]}"`, `jsondecode("{\"a\":1}").a`: `1`, `yamldecode("a: [b]").a[0]`: `"b"`,
		`format("%s-%d-%q-%%", "a", 5, "b")`: `"a-5-\"b\"-%"`, `join("-", var.list)`: `"a-b"`, `split(",", "a,b")`: `["a","b"]`, `replace("a.b", ".", "-")`: `"a-b"`,
		`replace("a1b22", "/[0-9]+/", "x")`: `"axbx"`, `substr("hello", 1, 3)`: `"ell"`, `lower("AbC")`: `"abc"`, `trimsuffix("a.fifo", ".fifo")`: `"a"`, `startswith("ab", "a")`: `true`,
		`merge({ a = 1 }, { b = 2 }, null)`: `{"a":1,"b":2}`, `concat(["a"], ["b"])`: `["a","b"]`, `flatten([["a"], [["b"]]])`: `["a","b"]`, `lookup(local.map, "none", 5)`: `5`,
		`try(local.map.none, "no")`: `"no"`, `can(local.map.none)`: `false`, `coalesce(null, "", "c")`: `"c"`, `length(var.list)`: `2`, `contains(var.list, "b")`: `true`,
		`keys(local.map)`: `["one","two"]`, `element(var.list, 3)`: `"b"`, `zipmap(["k"], [1])`: `{"k":1}`, `distinct(["a", "a"])`: `["a"]`, `compact(["", "a"])`: `["a"]`, `one([])`: `null`,
		`sort(["b", "a"])`: `["a","b"]`, `tostring(5)`: `"5"`, `max(var.list...)`: `"{?max()}"`, `<<-EOT
    a
      b
    EOT
`: `"a\n  b\n"`, `"%{ if var.flag }yes%{ else }no%{ endif }"`: `"yes"`, `"$${aws:username}"`: `"${aws:username}"`,
		// What is not defined stays open, and so does what depends on it.
		`var.open`: `"{?var.open}"`, `"q-${var.open}"`: `"q-{?var.open}"`, `var.open == "x" ? 1 : 2`: `"{?if(if(var.open))}"`, `var.open == "x" ? 1 : 1`: `1`,
		`var.open || true`: `true`, `var.open && false`: `false`, `lower("A-${var.open}")`: `"a-{?lower(var.open)}"`, `split(",", var.open)`: `"{?split(var.open)}"`,
		`var.open.field`: `"{?var.open.field}"`, `sha256("a")`: `"{?sha256()}"`, `local.loop`: `"{?local.loop}"`, `local.map[var.open]`: `"{?index(?var.open)}"`,
		`[for v in var.open : v]`: `"{?for(var.open)}"`, `terraform.workspace`: `"{?terraform.workspace}"`, `file("../secret")`: `"{?file ../secret}"`, `path.module`: `"d"`,
	} {
		out := evaluate(t, nil, map[string]string{"main.tf": given + "\nresource \"result\" \"it\" {\n  value = " + expression + "\n}\n"})
		if got := jsonOf(out.Resources["result.it"]["value"]); got != want {
			t.Errorf("%s = %s, want %s", expression, got, want)
		}
	}
}

func jsonOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", v)
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, jsonOf(item))
		}
		return "[" + strings.Join(all, ",") + "]"
	case map[string]any:
		var all []string
		for key, item := range v {
			all = append(all, fmt.Sprintf("%q:%s", key, jsonOf(item)))
		}
		slices.Sort(all)
		return "{" + strings.Join(all, ",") + "}"
	default:
		return fmt.Sprint(v)
	}
}

func TestVariables(t *testing.T) {
	files := map[string]string{
		"main.tf":          "variable \"a\" {}\nvariable \"b\" { default = 1 }\nvariable \"c\" {\n type = list(string)\n default = []\n}\nresource \"r\" \"x\" { value = \"${var.a}-${var.b}-${join(\"+\", var.c)}\" }\n",
		"terraform.tfvars": "a = \"file\"\nb = 2\n",
		"x.auto.tfvars":    "a = \"auto\"\n",
	}
	for _, tc := range []struct {
		variables map[string]string
		want      string
	}{
		{nil, "auto-2-"}, {map[string]string{"a": "flag", "c": `["x","y"]`}, "flag-2-x+y"},
	} {
		if got := evaluate(t, tc.variables, files).Resources["r.x"]["value"]; got != tc.want {
			t.Errorf("%v: %v, want %s", tc.variables, got, tc.want)
		}
	}
}

// Modules get their variables from the call, and give outputs back.
func TestModules(t *testing.T) {
	out := evaluate(t, nil, map[string]string{
		"main.tf": `
module "q" {
  source   = "./q"
  for_each = { a = "x", b = "y" }
  name     = each.value
}
module "gone" {
  source = "registry/module/aws"
}
resource "r" "all" { names = [for m in module.q : m.name] }
resource "r" "one" { name = module.q["a"].name }
resource "r" "gone" { name = module.gone.name }
`,
		"q/main.tf": "variable \"name\" {}\nresource \"r\" \"in\" { name = \"q-${var.name}\" }\noutput \"name\" { value = r.in.name }\n",
	})
	want := map[string]map[string]any{
		`module.q["a"].r.in`: {"name": "q-x"}, `module.q["b"].r.in`: {"name": "q-y"},
		"r.all": {"names": []any{"q-x", "q-y"}}, "r.one": {"name": "q-x"}, "r.gone": {"name": "{?module.gone.name}"},
	}
	if diff := cmp.Diff(want, out.Resources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := []string{"module.gone (registry/module/aws)"}; !slices.Equal(out.Missing, want) {
		t.Errorf("missing %v", out.Missing)
	}
}

// A number of instances that is not known counts as one, and is reported.
func TestUnknownNumberOfInstances(t *testing.T) {
	out := evaluate(t, nil, map[string]string{"main.tf": `
variable "create" {}
resource "r" "x" {
  count = var.create ? 1 : 0
  name  = "x"
}
resource "r" "dynamic" {
  dynamic "block" {
    for_each = var.create
    content { a = 1 }
  }
  dynamic "known" {
    for_each = { k = "v" }
    iterator = it
    content { a = "${it.key}${it.value}" }
  }
}
`})
	want := map[string]map[string]any{
		"r.x[0]":    {"name": "x"},
		"r.dynamic": {"dynamic": []any{map[string]any{"block": true}}, "known": []any{map[string]any{"a": "kv"}}},
	}
	if diff := cmp.Diff(want, out.Resources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := []tfconfig.Assumption{{Address: "r.x", On: "if(var.create)"}}; !slices.Equal(out.Assumed, want) {
		t.Errorf("assumed %v", out.Assumed)
	}
}

func TestCircularAndMultiplyingModulesEnd(t *testing.T) {
	files := map[string]string{}
	for i, name := range []string{"m/a", "m/b", "m/c", "m/d", "m/e", "m/f", "m/g", "m/h"} {
		files[name+"/main.tf"] = fmt.Sprintf("module \"next\" {\n  source = \"../%c\"\n  count = 100\n}\nmodule \"self\" {\n  source = \"./\"\n}\n", 'b'+i)
	}
	files["main.tf"] = "module \"a\" {\n  source = \"./m/a\"\n}\nmodule \"b\" {\n  source = \"./\"\n}\nmodule \"c\" {\n  source = \"./.\"\n}\n"
	out := evaluate(t, nil, files)
	for _, want := range []string{"module.b (./)", "module.c (./.)", "module.a.module.self (./)"} {
		if !slices.Contains(out.Missing, want) {
			t.Errorf("%s is not among %d missing modules, such as %v", want, len(out.Missing), out.Missing[:min(len(out.Missing), 5)])
		}
	}
}

// FuzzEvaluate checks that no configuration makes Evaluate panic or run forever.
func FuzzEvaluate(f *testing.F) {
	for _, text := range []string{
		`resource "a" "b" { c = a.b.c }`, `locals { a = local.b, b = local.a }`, "module \"a\" { source = \"./\" }", `resource "a" "b" { for_each = a.b }`,
		`resource "a" "b" { dynamic "x" { for_each = [1] } }`, `variable "v" { type = object({a = optional(list(map(string)))}) }`, `output "o" { value = jsonencode(module.o) }`,
		`data "a" "b" { c = [for k, v in data.a.b : k => v...] }`, `provider "aws" { region = var.r }`, `provider { region = 0 }`, `resource { a = 1 }`, `resource "a" { b = 1 }`,
		"module \"a\" { source = \"./\" }\nmodule \"b\" { source = \"./\" }\nmodule \"c\" { source = \"./\" }\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = tryEvaluate(nil, map[string]string{"main.tf": text})
	})
}
