// Package report writes findings for other programs: SARIF for code scanning, JUnit for
// test reports, and baselines of accepted findings. It is pure.
package report
