package pattern

import "testing"

// guideEvent has the shape of the EC2 event in the examples of the EventBridge User Guide.
const guideEvent = `{"version":"0","id":"6a7e8feb-b491-4cf7-a9f1-bf3703467718","detail-type":"EC2 Instance State-change Notification",
 "source":"aws.ec2","account":"111122223333","time":"2017-12-22T18:43:48Z","region":"us-west-1",
 "resources":["arn:aws:ec2:us-west-1:111122223333:instance/i-1234567890abcdef0"],
 "detail":{"instance-id":"i-1234567890abcdef0","state":"terminated","eventVersion":"","responseElements":null,
  "c-count":5,"d-count":2,"x-limit":301.8,"source-ip":"10.0.0.5","FileName":"image.PNG","location":"us-west",
  "service":"EventBridge","FilePath":"s3/lib/dir/a.tar"}}`

// The examples of the EventBridge User Guide, "Comparison operators for use in event patterns".
func TestUserGuideExamples(t *testing.T) {
	yes := func(name, pattern string) vector {
		return vector{name: name, pattern: pattern, yes: []string{guideEvent}}
	}
	no := func(name, pattern string) vector {
		return vector{name: name, pattern: pattern, no: []string{guideEvent}}
	}
	runAll(t, []vector{
		yes("events from EC2", `{"source":["aws.ec2"]}`),
		yes("one state among several", `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["terminated","stopped"]}}`),
		yes("an array intersects", `{"resources":["arn:aws:ec2:us-east-1:111122223333:instance/i-b188560f","arn:aws:ec2:us-west-1:111122223333:instance/i-1234567890abcdef0"]}`),
		yes("empty string", `{"detail":{"eventVersion":[""]}}`),
		yes("null", `{"detail":{"responseElements":[null]}}`),
		no("null is not the empty string", `{"detail":{"eventVersion":[null]}}`),
		yes("prefix of the time", `{"time":[{"prefix":"2017-12-22"}]}`),
		yes("prefix ignoring case", `{"detail":{"service":[{"prefix":{"equals-ignore-case":"EventB"}}]}}`),
		no("suffix is case-sensitive", `{"detail":{"FileName":[{"suffix":".png"}]}}`),
		yes("suffix ignoring case", `{"detail":{"FileName":[{"suffix":{"equals-ignore-case":".png"}}]}}`),
		no("anything but a state", `{"detail":{"state":[{"anything-but":"terminated"}]}}`),
		yes("anything but a number", `{"detail":{"x-limit":[{"anything-but":123}]}}`),
		no("anything but states", `{"detail":{"state":[{"anything-but":["stopped","terminated"]}]}}`),
		yes("anything but numbers", `{"detail":{"x-limit":[{"anything-but":[100,200,300]}]}}`),
		no("anything but ignoring case", `{"detail":{"state":[{"anything-but":{"equals-ignore-case":"TERMINATED"}}]}}`),
		yes("anything but a prefix", `{"detail":{"state":[{"anything-but":{"prefix":"init"}}]}}`),
		yes("anything but prefixes", `{"detail":{"state":[{"anything-but":{"prefix":["init","error"]}}]}}`),
		yes("anything but a suffix", `{"detail":{"FileName":[{"anything-but":{"suffix":".txt"}}]}}`),
		yes("anything but suffixes", `{"detail":{"FileName":[{"anything-but":{"suffix":[".txt",".rtf"]}}]}}`),
		no("anything but a wildcard", `{"detail":{"FilePath":[{"anything-but":{"wildcard":"*/lib/*"}}]}}`),
		no("anything but wildcards", `{"detail":{"FilePath":[{"anything-but":{"wildcard":["*/lib/*","*/bin/*"]}}]}}`),
		yes("numeric", `{"detail":{"c-count":[{"numeric":[">",0,"<=",5]}],"d-count":[{"numeric":["<",10]}],"x-limit":[{"numeric":["=",3.018e2]}]}}`),
		yes("ip address", `{"detail":{"source-ip":[{"cidr":"10.0.0.0/24"}]}}`),
		yes("exists", `{"detail":{"state":[{"exists":true}]}}`),
		no("not exists", `{"detail":{"c-count":[{"exists":false}]}}`),
		yes("not exists of a missing field", `{"detail-type":["EC2 Instance State-change Notification"],"resources":[{"exists":true}],"detail":{"x":[{"exists":false}]}}`),
		yes("equals ignoring case", `{"detail-type":[{"equals-ignore-case":"ec2 instance state-change notification"}]}`),
		yes("wildcards", `{"resources":[{"wildcard":"arn:aws:ec2:*:instance/*abcdef0"}]}`),
		yes("$or", `{"detail":{"$or":[{"c-count":[{"numeric":[">",0,"<=",5]}]},{"d-count":[{"numeric":["<",10]}]},{"x-limit":[{"numeric":["=",3.018e2]}]}]}}`),
		yes("several operators", `{"time":[{"prefix":"2017-12-22"}],"detail":{"state":[{"anything-but":"initializing"}],"c-count":[{"numeric":[">",0,"<=",5]}],"d-count":[{"numeric":["<",10]}],"x-limit":[{"anything-but":[100,200,300]}]}}`),
		{name: "anything but of mixed types is refused", pattern: `{"detail":{"state":[{"anything-but":["x",1]}]}}`,
			err: "Inside anything but list, either all values are number or string, mixed type is not supported"},
	})
}
