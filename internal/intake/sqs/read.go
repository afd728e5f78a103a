package sqs

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Read returns the notices of a message, as this source would record them. Those of a message
// that names a group of instances, such as a Capacity Block, have no instance id. There may be
// none: not every message is relevant. The error says which part cannot be read.
func Read(body string) ([]notice.Notice, error) {
	d, err := decode(body)
	if err != nil {
		return nil, err
	}
	all := d.notices
	for _, g := range d.groups {
		all = append(all, g.notice)
	}
	return all, nil
}
