package report

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// guide is the page that describes each finding. Each id is an anchor in it.
const guide = "https://github.com/lifeboat-dev/lifeboat/blob/main/docs/guides/doctor.md"

// The parts of SARIF 2.1.0 that are written (OASIS, "Static Analysis Results Interchange
// Format", version 2.1.0).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string `json:"id"`
		HelpURI string `json:"helpUri"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// SARIF encodes findings as a SARIF 2.1.0 log. files are the checked files: code scanning
// shows a result only at a file, so a finding that names none gets the first.
func SARIF(all []finding.Finding, version string, files []string) ([]byte, error) {
	run := sarifRun{Results: []sarifResult{}, Tool: sarifTool{Driver: sarifDriver{Name: "lifeboat doctor", Version: version, InformationURI: guide, Rules: []sarifRule{}}}}
	index := map[string]int{}
	for _, f := range all {
		if _, known := index[f.ID]; !known {
			index[f.ID] = len(index)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: f.ID, HelpURI: guide + "#" + f.ID})
		}
		location := sarifLocation{Logical: []sarifLogical{{Name: f.Object}}}
		if file := fileOf(f, files); file != "" {
			location.Physical = &sarifPhysical{Artifact: sarifArtifact{URI: file}}
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.ID, RuleIndex: index[f.ID], Level: level(f.Severity), Message: sarifText{Text: text(f)},
			Locations: []sarifLocation{location}, Fingerprints: map[string]string{"idAndObject/v1": f.ID + "/" + f.Object},
		})
	}
	return json.MarshalIndent(sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0", Runs: []sarifRun{run},
	}, "", "  ")
}

// level returns the SARIF level of a severity. What could not be checked is an error: a
// pipeline must not read it as success.
func level(s finding.Severity) string {
	switch s {
	case finding.Warning:
		return "warning"
	case finding.Info:
		return "note"
	}
	return "error"
}

func text(f finding.Finding) string {
	out := f.Object + ": " + f.Problem
	if f.Fix != "" {
		out += "\nFix: " + f.Fix
	}
	return out
}

// fileOf returns the file that a finding is about.
func fileOf(f finding.Finding, files []string) string {
	if len(files) == 0 {
		return ""
	}
	i := slices.IndexFunc(files, func(name string) bool { return strings.Contains(f.Fix, "in "+name) || strings.Contains(f.Object, name) })
	return files[max(i, 0)]
}
