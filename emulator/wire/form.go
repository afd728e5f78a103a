package wire

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// FormDecode fills the struct that in points to from form parameters, as the
// Query protocols flatten them:
//
//	QueueUrl=…                         string, int, bool, float, []byte, pointers to them
//	InstanceId.1=… InstanceId.2=…      lists, also with ".member." before the number
//	Filter.1.Name=… Filter.1.Value.1=… lists of structs, structs in structs
//	Tag.1.Key=… Tag.1.Value=…          maps
//
// The tag `query:"Filter"` names a field; without one it goes by its json tag
// or else its own name; "-" leaves it out. Maps name their entry parts too, as
// in `query:"Tag,Key,Value"`.
func FormDecode(form url.Values, in any) error {
	d := formDecoder{form: form, names: make([]string, 0, len(form))}
	for name := range form {
		d.names = append(d.names, name)
	}
	slices.Sort(d.names)
	v := reflect.ValueOf(in)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decoding form into %T: need a pointer to a struct", in)
	}
	return d.fields("", v.Elem())
}

type formDecoder struct {
	form  url.Values
	names []string // sorted
}

// has reports whether the form has name itself, or a parameter below it.
func (d *formDecoder) has(name string) bool {
	if _, ok := d.form[name]; ok {
		return true
	}
	i, _ := slices.BinarySearch(d.names, name+".")
	return i < len(d.names) && strings.HasPrefix(d.names[i], name+".")
}

func (d *formDecoder) fields(prefix string, v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			if err := d.fields(prefix, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		if !field.IsExported() {
			continue
		}
		name, entry := formName(field)
		if name == "-" || !d.has(prefix+name) {
			continue
		}
		if err := d.value(prefix+name, entry, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// formName reads the field's tag: its parameter, and the names of a map's
// parts.
func formName(field reflect.StructField) (name string, entry []string) {
	name = field.Name
	if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag != "" && tag != "-" {
		name = tag
	}
	if tag := field.Tag.Get("query"); tag != "" {
		parts := strings.Split(tag, ",")
		name, entry = parts[0], parts[1:]
	}
	if len(entry) != 2 {
		entry = []string{"key", "value"}
	}
	return name, entry
}

func (d *formDecoder) value(name string, entry []string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(name, entry, v.Elem())
	case reflect.Struct:
		return d.fields(name+".", v)
	case reflect.Map:
		return d.entries(name, entry, v)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			return d.list(name, v)
		}
	}
	return scalar(name, d.form.Get(name), v)
}

// items calls f with the prefix of each list element, in order. Lists end at
// the first number that is missing.
func (d *formDecoder) items(name string, f func(prefix string) error) error {
	if d.has(name + ".member") {
		name += ".member"
	}
	for i := 1; d.has(name + "." + strconv.Itoa(i)); i++ {
		if err := f(name + "." + strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *formDecoder) list(name string, v reflect.Value) error {
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	return d.items(name, func(prefix string) error {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(prefix, nil, element); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
		return nil
	})
}

func (d *formDecoder) entries(name string, entry []string, v reflect.Value) error {
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("reading parameter %s: cannot decode into %s", name, v.Type())
	}
	v.Set(reflect.MakeMap(v.Type()))
	if d.has(name + ".entry") {
		name += ".entry"
	}
	return d.items(name, func(prefix string) error {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(prefix+"."+entry[1], nil, element); err != nil {
			return err
		}
		key := reflect.ValueOf(d.form.Get(prefix + "." + entry[0])).Convert(v.Type().Key())
		v.SetMapIndex(key, element)
		return nil
	})
}

func scalar(name, text string, v reflect.Value) error {
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
	case reflect.Float64:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		v.SetFloat(x)
	case reflect.Slice: // of bytes, as value made sure
		var b []byte
		b, err = base64.StdEncoding.DecodeString(text)
		v.SetBytes(b)
	default:
		return fmt.Errorf("reading parameter %s: cannot decode into %s", name, v.Type())
	}
	if err != nil {
		return fmt.Errorf("reading parameter %s: %q is not a valid %s", name, text, v.Kind())
	}
	return nil
}
