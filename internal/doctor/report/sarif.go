package report

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// The pages that describe the findings. Each id is an anchor in one of them.
const (
	guides        = "https://github.com/lifeboat-dev/lifeboat/blob/main/docs/guides/"
	guide         = guides + "doctor.md"
	guideOfGroups = guides + "node-groups.md"
)

// ofGroups are the findings that only the guide to node groups describes.
var ofGroups = []string{
	"differs", "group-deleting", "group-missing", "hook-stale", "hook-target", "hooks-unknown",
	"instances-before-hook", "instances-retained", "launch-hook-elsewhere", "launch-hook-missing",
	"launch-hook-too-short", "launches-fail", "operator-owned", "other-cluster", "other-hook", "pool-empty",
	"process-suspended", "terminate-hook-elsewhere", "terminate-hook-missing", "warm-outdated",
}

func helpURI(id string) string {
	if slices.Contains(ofGroups, id) {
		return guideOfGroups + "#" + id
	}
	return guide + "#" + id
}

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
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: f.ID, HelpURI: helpURI(f.ID)})
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

// fileOf returns the URI of the file that a finding is about: of those that it names, the one
// with the longest name, because a name can be a part of another.
func fileOf(f finding.Finding, files []string) string {
	if len(files) == 0 {
		return ""
	}
	best := ""
	for _, name := range files {
		if len(name) > len(best) && (strings.Contains(f.Fix, "in "+name) || strings.Contains(f.Object, name)) {
			best = name
		}
	}
	location := url.URL{Path: filepath.ToSlash(cmp.Or(best, files[0]))}
	if path.IsAbs(location.Path) {
		location.Scheme = "file"
	}
	return location.String()
}
