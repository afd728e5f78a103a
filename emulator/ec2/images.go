package ec2

import (
	"slices"
	"time"
)

// Image is a machine image that the account can use.
type Image struct {
	ID, Name, Description string
	Architecture          string // X86 or ARM
	OwnerID               string
	Created               time.Time
}

// imageOwner is the account that publishes the images for EKS (Amazon EKS User Guide,
// Retrieve recommended Amazon Linux AMI IDs).
const imageOwner = "602401143452"

// Images lists the images that DescribeImages returns: one of Amazon Linux 2023 for EKS per
// architecture. Launches accept any other image too.
func Images() []Image {
	created := time.Date(2026, 10, 14, 18, 6, 41, 0, time.UTC)
	image := func(id, arch string) Image {
		return Image{
			ID: id, Name: "amazon-eks-node-al2023-" + arch + "-standard-1.36-v20261014", Architecture: arch,
			Description: "EKS-optimized Kubernetes node based on Amazon Linux 2023, (k8s: 1.36)",
			OwnerID:     imageOwner, Created: created,
		}
	}
	return []Image{
		image("ami-0a2023f0c5e1b7d86", X86),
		image("ami-0a2023f0c5e1b7d64", ARM),
	}
}

// ImageID is the image of an architecture, [X86] or [ARM]; empty for others.
func ImageID(arch string) string {
	images := Images()
	if i := slices.IndexFunc(images, func(m Image) bool { return m.Architecture == arch }); i >= 0 {
		return images[i].ID
	}
	return ""
}

// findImage returns a known image.
func findImage(id string) (Image, bool) {
	images := Images()
	i := slices.IndexFunc(images, func(m Image) bool { return m.ID == id })
	if i < 0 {
		return Image{}, false
	}
	return images[i], true
}

// checkFit rejects an image for another processor architecture. Unknown images fit all.
func checkFit(imageID, typeName string) error {
	m, known := findImage(imageID)
	t, ok := FindType(typeName)
	if !known || !ok || m.Architecture == t.Architecture {
		return nil
	}
	return invalidValue("The architecture '" + t.Architecture + "' of the specified instance type does not match the architecture '" +
		m.Architecture + "' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.")
}
