package wire

import (
	"encoding/base64"
	"encoding/xml"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Time is a timestamp in answers: ISO 8601 with milliseconds in XML, seconds
// since 1970 in JSON.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(t.UnixMilli())/1000, 'f', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler, for inputs.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	seconds, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	t.Time = time.UnixMilli(int64(seconds * 1000)).UTC()
	return nil
}

// MarshalXML implements xml.Marshaler. The zero time is left out.
func (t Time) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if t.IsZero() {
		return nil
	}
	return e.EncodeElement(t.UTC().Format("2006-01-02T15:04:05.000Z"), start)
}

// Blob is binary data, in base64 in every protocol.
type Blob []byte

// MarshalText implements encoding.TextMarshaler.
func (b Blob) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Blob) UnmarshalText(text []byte) error {
	decoded, err := base64.StdEncoding.AppendDecode(nil, text)
	*b = decoded
	return err
}

// Set is a list that EC2 wraps: <tagSet><item>…</item></tagSet>. Unlike
// encoding/xml's own "tagSet>item" it keeps the wrapper when empty, as EC2
// does.
type Set[T any] []T

// MarshalXML implements xml.Marshaler.
func (s Set[T]) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	return wrapped(e, start, "item", s)
}

// Members is a list as Query services wrap it: <Tags><member>…</member></Tags>.
type Members[T any] []T

// MarshalXML implements xml.Marshaler.
func (m Members[T]) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	return wrapped(e, start, "member", m)
}

func wrapped[T any](e *xml.Encoder, start xml.StartElement, name string, list []T) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for i := range list {
		if err := e.EncodeElement(&list[i], xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

// Attributes is a map that is flat in XML, sorted by name:
// <Attribute><Name>…</Name><Value>…</Value></Attribute>.
type Attributes map[string]string

// MarshalXML implements xml.Marshaler.
func (a Attributes) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	return EncodeEntries(e, start, "Name", a)
}

// Tags is a map that is flat in XML, sorted by key:
// <Tag><Key>…</Key><Value>…</Value></Tag>.
type Tags map[string]string

// MarshalXML implements xml.Marshaler.
func (t Tags) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	return EncodeEntries(e, start, "Key", t)
}

// EncodeEntries writes a map as one start element per entry, holding an
// element of the name keyName and one named Value.
func EncodeEntries[M ~map[string]V, V any](e *xml.Encoder, start xml.StartElement, keyName string, m M) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if err := e.EncodeToken(start); err != nil {
			return err
		}
		if err := e.EncodeElement(key, xml.StartElement{Name: xml.Name{Local: keyName}}); err != nil {
			return err
		}
		if err := e.EncodeElement(m[key], xml.StartElement{Name: xml.Name{Local: "Value"}}); err != nil {
			return err
		}
		if err := e.EncodeToken(start.End()); err != nil {
			return err
		}
	}
	return nil
}
