package fis

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// Service is FIS on the wire.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:       "fis",
		Protocol:   wire.RESTJSON,
		Background: s.Run,
		Actions: map[string]wire.Action{
			"CreateExperimentTemplate": wire.Do(a.createTemplate),
			"DeleteExperimentTemplate": wire.Do(a.deleteTemplate),
			"GetAction":                wire.Do(a.getAction),
			"GetExperiment":            wire.Do(a.getExperiment),
			"GetExperimentTemplate":    wire.Do(a.getTemplate),
			"ListActions":              wire.Do(a.listActions),
			"ListExperimentTemplates":  wire.Do(a.listTemplates),
			"ListExperiments":          wire.Do(a.listExperiments),
			"ListTagsForResource":      wire.Do(a.listTags),
			"StartExperiment":          wire.Do(a.startExperiment),
			"StopExperiment":           wire.Do(a.stopExperiment),
			"TagResource":              wire.Do(a.tagResource),
			"UntagResource":            wire.Do(a.untagResource),
		},
		Paths: map[string]string{
			"GET /actions":                     "ListActions",
			"GET /actions/{id}":                "GetAction",
			"GET /experiments":                 "ListExperiments",
			"POST /experiments":                "StartExperiment",
			"GET /experiments/{id}":            "GetExperiment",
			"DELETE /experiments/{id}":         "StopExperiment",
			"GET /experimentTemplates":         "ListExperimentTemplates",
			"POST /experimentTemplates":        "CreateExperimentTemplate",
			"GET /experimentTemplates/{id}":    "GetExperimentTemplate",
			"DELETE /experimentTemplates/{id}": "DeleteExperimentTemplate",
			"GET /tags/{resourceArn}":          "ListTagsForResource",
			"POST /tags/{resourceArn}":         "TagResource",
			"DELETE /tags/{resourceArn}":       "UntagResource",
		},
	}
}
