package recorder

import (
	"encoding/json"
	"reflect"
	"strings"
	"unsafe"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// encodeArgs writes a plugin's arguments as a configuration file has them; nil where it cannot.
func encodeArgs(args kruntime.Object) json.RawMessage {
	if args == nil || reflect.ValueOf(args).IsNil() {
		return nil
	}
	info, ok := kruntime.SerializerInfoForMediaType(configscheme.Codecs.SupportedMediaTypes(), kruntime.ContentTypeJSON)
	if !ok {
		return nil
	}
	var codecs serializer.CodecFactory = configscheme.Codecs
	encoded, err := kruntime.Encode(codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion), args.DeepCopyObject())
	if err != nil {
		return nil
	}
	return encoded
}

// unusual names the features that are not as the gates have them by default.
func unusual(features feature.Features) []string {
	usual := reflect.ValueOf(feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	given := reflect.ValueOf(features)
	found := []string{}
	for i := 0; i < given.NumField(); i++ {
		if !reflect.DeepEqual(given.Field(i).Interface(), usual.Field(i).Interface()) {
			found = append(found, given.Type().Field(i).Name)
		}
	}
	return found
}

// objectsOf finds what a plugin may read besides nodes and their pods: what the informers of its
// handle hold, and what listers in its own fields list.
func objectsOf(plugin fwk.Plugin, handle fwk.Handle, extra []kruntime.Object) []kruntime.Object {
	found := &collection{seen: map[string]bool{}, objects: []kruntime.Object{}}
	for _, object := range extra {
		found.add(object)
	}
	if handle != nil && !reflect.ValueOf(handle).IsNil() {
		if factory := handle.SharedInformerFactory(); factory != nil && !reflect.ValueOf(factory).IsNil() {
			found.addInformers(reflect.ValueOf(factory).Elem().FieldByName("informers"))
		}
	}
	value := reflect.ValueOf(plugin)
	if value.Kind() == reflect.Pointer {
		for i := 0; i < value.Elem().NumField(); i++ {
			found.addField(value.Elem().Field(i))
		}
	}
	return found.objects
}

type collection struct {
	seen    map[string]bool
	objects []kruntime.Object
}

func (c *collection) add(item interface{}) {
	object, ok := item.(kruntime.Object)
	if !ok || reflect.ValueOf(object).IsNil() {
		return
	}
	kinds, _, err := clientscheme.Scheme.ObjectKinds(object)
	if err != nil {
		return
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	named := object.(interface {
		GetNamespace() string
		GetName() string
	})
	key := kinds[0].String() + named.GetNamespace() + "/" + named.GetName()
	if !c.seen[key] {
		c.seen[key] = true
		c.objects = append(c.objects, object)
	}
}

func open(field reflect.Value) reflect.Value {
	if !field.CanAddr() {
		return reflect.Value{}
	}
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

func (c *collection) addInformers(field reflect.Value) {
	if !field.IsValid() {
		return
	}
	informers := open(field)
	for _, key := range informers.MapKeys() {
		if informer, ok := informers.MapIndex(key).Interface().(cache.SharedIndexInformer); ok {
			for _, item := range informer.GetStore().List() {
				c.add(item)
			}
		}
	}
}

// addField reads the fake listers of tests, which are slices of objects, also where one is inside of
// another object, as in a CSI manager.
func (c *collection) addField(field reflect.Value) {
	value := open(field)
	for value.IsValid() && (value.Kind() == reflect.Interface || value.Kind() == reflect.Pointer) {
		value = value.Elem()
	}
	if !value.IsValid() {
		return
	}
	kind := value.Type()
	switch {
	case kind.Kind() == reflect.Slice && strings.HasSuffix(kind.Name(), "Lister"):
		c.addSlice(value)
	case strings.HasPrefix(kind.Name(), "DefaultCSIManager") || strings.HasPrefix(kind.Name(), "csiNodeLister"):
		for i := 0; i < value.NumField(); i++ {
			c.addField(value.Field(i))
		}
	}
}

func (c *collection) addSlice(slice reflect.Value) {
	for i := 0; i < slice.Len(); i++ {
		item := slice.Index(i)
		if item.Kind() == reflect.Struct {
			copied := reflect.New(item.Type())
			copied.Elem().Set(item)
			c.add(copied.Interface())
		} else {
			c.add(item.Interface())
		}
	}
}
