package pattern

import (
	"errors"
	"reflect"
	"testing"
)

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`,
		`{"a":[1,"x",null,true,{"prefix":"x"},{"suffix":{"equals-ignore-case":"y"}}]}`,
		`{"a":[{"anything-but":{"wildcard":["*/a/*","\\*"]}},{"numeric":[">=",0,"<",1e400]},{"cidr":"::/0"}]}`,
		`{"$or":[{"a":[{"exists":false}]},{"$or":[{"b.c":[1]},{"":[2]}]}],"a":{"b":[3]}}`,
		`{"resources":[{"prefix":"arn:aws:ec2:eu-west-1:1"}],"details":{"state":["Stopped"]}}`,
		`{"a":"x"}`, `{"a":[]}`, `[`, ``, "{\"\xff\":[1]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Compile(data)
		q, again := Compile(data)
		if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Fatalf("not deterministic: %v, %v", err, again)
		}
		if err != nil {
			if syntax := (*SyntaxError)(nil); !errors.As(err, &syntax) {
				t.Fatalf("error is a %T", err)
			}
			return
		}
		if !reflect.DeepEqual(Lint(p), Lint(q)) {
			t.Fatal("Lint is not deterministic")
		}
	})
}

func FuzzMatch(f *testing.F) {
	spot := `{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","resources":["arn:aws:ec2:eu-west-1b:instance/i-1"],"detail":{"instance-id":"i-1"}}`
	f.Add([]byte(`{"detail-type":["EC2 Spot Interruption Warning"],"resources":[{"prefix":"arn:aws:ec2:eu-west-1:1"}]}`), []byte(spot))
	f.Add([]byte(`{"detailType":["x"],"detail":{"instanceId":["i-*"],"state":{"x":[1]}}}`), []byte(spot))
	f.Add([]byte(`{"a":{"x":[1],"y":[{"exists":false},2]},"a.b":[{"anything-but":"x"}]}`), []byte(`{"a":[{"x":1},{"y":2,"b":[["z"]]}],"a.b":{}}`))
	f.Add([]byte(`{"$or":[{"a":[{"numeric":[">",1]}]},{"b":[{"wildcard":"*a*b"}]}]}`), []byte(`{"a":1e400,"b":"aab"}`))
	f.Add([]byte(`{"a":["10.0.0.1",{"cidr":"::1/8"},{"equals-ignore-case":"ſ"}]}`), []byte(`{"a":["010.0.0.1","S",null]}`))
	f.Fuzz(func(t *testing.T, pattern, event []byte) {
		p, err := Compile(pattern)
		if err != nil {
			return
		}
		e, err := Decode(event)
		if err != nil {
			return
		}
		matched, x := p.MatchEvent(e), p.ExplainEvent(e)
		if x.Matched != matched || (len(x.Mismatches) == 0) != matched {
			t.Fatalf("Match says %v, Explain %+v", matched, x)
		}
		if again := p.ExplainEvent(e); x.String() != again.String() {
			t.Fatalf("Explain is not deterministic:\n%s\n%s", x, again)
		}
	})
}
