package ec2

import (
	"context"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type imagesInput struct {
	paging

	IDs     []string `query:"ImageId"`
	Owners  []string `query:"Owner"`
	Filters []Filter `query:"Filter"`
}

type imageReply struct {
	ID             string             `xml:"imageId"`
	Location       string             `xml:"imageLocation"`
	State          string             `xml:"imageState"`
	OwnerID        string             `xml:"imageOwnerId"`
	OwnerAlias     string             `xml:"imageOwnerAlias"`
	Created        wire.Time          `xml:"creationDate"`
	Public         bool               `xml:"isPublic"`
	Architecture   string             `xml:"architecture"`
	Type           string             `xml:"imageType"`
	Platform       string             `xml:"platformDetails"`
	Name           string             `xml:"name"`
	Description    string             `xml:"description"`
	RootDeviceType string             `xml:"rootDeviceType"`
	RootDeviceName string             `xml:"rootDeviceName"`
	Virtualization string             `xml:"virtualizationType"`
	Hypervisor     string             `xml:"hypervisor"`
	ENA            bool               `xml:"enaSupport"`
	Tags           wire.Set[tagReply] `xml:"tagSet"`
}

type imagesReply struct {
	Images    wire.Set[imageReply] `xml:"imagesSet"`
	NextToken string               `xml:"nextToken,omitempty"`
}

func (a *api) describeImages(_ context.Context, _ *wire.Request, in *imagesInput) (*imagesReply, error) {
	for _, id := range in.IDs {
		if err := checkImage(id); err != nil {
			return nil, err
		}
	}
	list, err := byID(Images(), in.IDs, func(m Image) string { return m.ID }, imageNotFound)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(m Image) bool { return !ownedBy(m, in.Owners) })
	text := func(f func(Image) string) field[Image] { return one(f) }
	list, err = filtered(list, in.Filters, func(m Image) map[string]string { return a.state.tagsOn(m.ID) }, map[string]field[Image]{
		"architecture":        text(func(m Image) string { return m.Architecture }),
		"creation-date":       text(func(m Image) string { return m.Created.Format("2006-01-02T15:04:05.000Z") }),
		"description":         text(func(m Image) string { return m.Description }),
		"image-id":            text(func(m Image) string { return m.ID }),
		"image-type":          text(func(Image) string { return "machine" }),
		"is-public":           text(func(Image) string { return "true" }),
		"name":                text(func(m Image) string { return m.Name }),
		"owner-alias":         text(func(Image) string { return "amazon" }),
		"owner-id":            text(func(m Image) string { return m.OwnerID }),
		"root-device-type":    text(func(Image) string { return "ebs" }),
		"state":               text(func(Image) string { return "available" }),
		"virtualization-type": text(func(Image) string { return "hvm" }),
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 1)
	out := &imagesReply{NextToken: next}
	for _, m := range list {
		out.Images = append(out.Images, imageToWire(m))
	}
	return out, err
}

// ownedBy reports whether an image belongs to one of the owners: account ids, or aliases.
func ownedBy(m Image, owners []string) bool {
	return len(owners) == 0 || slices.ContainsFunc(owners, func(o string) bool {
		return o == m.OwnerID || strings.EqualFold(o, "amazon")
	})
}

func imageToWire(m Image) imageReply {
	return imageReply{
		ID: m.ID, Location: "amazon/" + m.Name, State: "available", OwnerID: m.OwnerID, OwnerAlias: "amazon",
		Created: wire.Time{Time: m.Created}, Public: true, Architecture: m.Architecture, Type: "machine",
		Platform: productDescription, Name: m.Name, Description: m.Description, RootDeviceType: "ebs",
		RootDeviceName: rootDevice, Virtualization: "hvm", Hypervisor: "xen", ENA: true,
	}
}
