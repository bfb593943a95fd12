// Fills an object of each kind, every field of it, and writes it as JSON and as protobuf, so that our
// decoder can be compared with Go's encoder. Out: one line of JSON for each object.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const depthMax = 14

type sample struct {
	JSON     json.RawMessage `json:"json"`
	Protobuf []byte          `json:"protobuf"`
}

// filler gives each value another number, so that no two fields can be taken for one another.
type filler struct {
	count  int
	inside map[reflect.Type]int // how often a type is inside itself
}

func main() {
	must(apiextensions.AddToScheme(scheme.Scheme))
	must(apiregistration.AddToScheme(scheme.Scheme))
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	out := json.NewEncoder(os.Stdout)
	for _, kind := range kinds() {
		made := &filler{inside: map[reflect.Type]int{}}
		value := reflect.New(scheme.Scheme.AllKnownTypes()[kind])
		made.fill(value.Elem(), "top", 0)
		object := value.Interface().(runtime.Object)
		object.GetObjectKind().SetGroupVersionKind(kind)
		text, err := json.Marshal(object)
		must(err)
		var packed bytes.Buffer
		if err := serializer.Encode(object, &packed); err != nil {
			fmt.Fprintln(os.Stderr, kind, err)
			continue
		}
		must(out.Encode(sample{JSON: text, Protobuf: packed.Bytes()}))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func kinds() []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for kind := range scheme.Scheme.AllKnownTypes() {
		if kind.Version != runtime.APIVersionInternal {
			found = append(found, kind)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}

func (f *filler) fill(value reflect.Value, name string, depth int) {
	f.count++
	if f.special(value, name) {
		return
	}
	switch value.Kind() {
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(int64(f.count) * int64(1-2*(f.count%2)))
	case reflect.Float64:
		value.SetFloat(float64(f.count) / 8)
	case reflect.String:
		value.SetString(fmt.Sprintf("%s-%d", name, f.count))
	case reflect.Pointer:
		if f.mayEnter(value.Type().Elem(), depth) {
			value.Set(reflect.New(value.Type().Elem()))
			f.fill(value.Elem(), name, depth+1)
		}
	case reflect.Slice:
		f.slice(value, name, depth)
	case reflect.Map:
		f.mapping(value, name, depth)
	case reflect.Struct:
		f.inside[value.Type()]++
		for i := 0; i < value.NumField(); i++ {
			field := value.Type().Field(i)
			if isSent(field) {
				f.fill(value.Field(i), field.Name, depth+1)
			}
		}
		f.inside[value.Type()]--
	}
}

func isSent(field reflect.StructField) bool {
	isObject := field.Type.Kind() == reflect.Interface // an internal form of what another field holds
	return field.IsExported() && field.Tag.Get("json") != "-" && field.Name != "TypeMeta" && !isObject
}

func (f *filler) mayEnter(goType reflect.Type, depth int) bool {
	return depth < depthMax && f.inside[goType] < 2
}

func (f *filler) slice(value reflect.Value, name string, depth int) {
	element := value.Type().Elem()
	if element.Kind() == reflect.Uint8 {
		value.SetBytes([]byte(fmt.Sprintf("%s %d \xff", name, f.count)))
		return
	}
	if !f.mayEnter(element, depth) {
		return
	}
	count := 2
	if element.Kind() == reflect.Struct && depth > 2 {
		count = 1
	}
	value.Set(reflect.MakeSlice(value.Type(), count, count))
	for i := 0; i < count; i++ {
		f.fill(value.Index(i), name, depth+1)
	}
}

func (f *filler) mapping(value reflect.Value, name string, depth int) {
	if !f.mayEnter(value.Type().Elem(), depth) {
		return
	}
	value.Set(reflect.MakeMap(value.Type()))
	key := reflect.New(value.Type().Key()).Elem()
	f.fill(key, name, depth+1)
	element := reflect.New(value.Type().Elem()).Elem()
	f.fill(element, name, depth+1)
	value.SetMapIndex(key, element)
}

// special fills what is more than the sum of its fields, or where only one of the fields counts.
func (f *filler) special(value reflect.Value, name string) bool {
	when := time.Unix(1_600_000_000+int64(f.count), 123_456_000)
	switch typed := value.Addr().Interface().(type) {
	case *resource.Quantity:
		*typed = resource.MustParse(fmt.Sprintf("%dm", f.count*1000+1))
	case *meta.Time:
		*typed = meta.NewTime(when)
	case *meta.MicroTime:
		*typed = meta.NewMicroTime(when)
	case *meta.FieldsV1:
		typed.Raw = []byte(fmt.Sprintf(`{"f:%s":{"f:%d":{}}}`, name, f.count))
	case *runtime.RawExtension:
		typed.Raw = []byte(fmt.Sprintf(`{"%s":[%d]}`, name, f.count))
	case *apiextensions.JSON:
		typed.Raw = []byte(fmt.Sprintf(`[{"%s":%d}]`, name, f.count))
	case *apiextensions.JSONSchemaPropsOrArray:
		typed.Schema = &apiextensions.JSONSchemaProps{ID: fmt.Sprint(f.count)}
		if f.count%2 == 0 {
			typed.Schema, typed.JSONSchemas = nil, []apiextensions.JSONSchemaProps{{ID: name}, *typed.Schema}
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		typed.Property = []string{name, fmt.Sprint(f.count)}
	case *intstr.IntOrString:
		*typed = intstr.FromInt32(int32(-f.count))
		if f.count%2 == 0 {
			*typed = intstr.FromString(fmt.Sprintf("%d%%", f.count))
		}
	default:
		return false
	}
	return true
}
