// Package ssm emulates the part of AWS Systems Manager that names machine images: the
// public parameters of the images that are made for EKS, and what a test puts beside
// them.
package ssm
