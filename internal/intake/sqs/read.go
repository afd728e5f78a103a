package sqs

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Read returns the notices that a message makes, as this source would record
// them. Those of a message that names a group of instances, such as all in a
// Capacity Block, come without an instance. There may be none: not every message
// is of concern. The error says what of it cannot be read.
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
