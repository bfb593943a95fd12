package main

import (
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"time"
)

// still is an informer that is never started: what it holds is put into it, and every handler has
// seen it when put returns. An informer with a watch would take 100 ms per case to settle.
type still struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

// synced answers every question whether something has arrived with yes.
type synced struct{}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (synced) HasSynced() bool                     { return true }
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (synced) Name() string                        { return "still" }
func (synced) Done() <-chan struct{}               { return closed }

func (s *still) HasSynced() bool                     { return true }
func (s *still) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (s *still) Run(<-chan struct{})                 {}

func (s *still) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	s.handlers = append(s.handlers, h)
	for _, object := range s.GetStore().List() {
		h.OnAdd(object, true)
	}
	return synced{}, nil
}

func (s *still) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s *still) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s *still) put(object runtime.Object) error {
	old, exists, err := s.GetStore().Get(object)
	if err != nil {
		return err
	}
	if err := s.GetStore().Update(object); err != nil {
		return err
	}
	for _, h := range s.handlers {
		if exists {
			h.OnUpdate(old, object)
		} else {
			h.OnAdd(object, false)
		}
	}
	return nil
}

func (s *still) clear() {
	for _, object := range s.GetStore().List() {
		_ = s.GetStore().Delete(object)
		for _, h := range s.handlers {
			h.OnDelete(object)
		}
	}
}

// shelves holds a still informer for every kind that a plugin may read, behind one factory.
type shelves struct {
	factory informers.SharedInformerFactory
	byType  map[reflect.Type]*still
	version int64
}

func newShelves(client kubernetes.Interface, kinds []runtime.Object) *shelves {
	s := &shelves{
		factory: informers.NewSharedInformerFactory(client, 0),
		byType:  map[reflect.Type]*still{},
	}
	for _, kind := range kinds {
		informer := &still{SharedIndexInformer: cache.NewSharedIndexInformer(
			&cache.ListWatch{}, kind, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		)}
		s.byType[reflect.TypeOf(kind)] = informer
		// The first informer of a type is the one that every lister and plugin gets.
		s.factory.InformerFor(kind, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return informer
		})
	}
	return s
}

// put gives the object a newer version than any before: assume caches drop what is not newer.
func (s *shelves) put(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	s.version++
	accessor.SetResourceVersion(strconv.FormatInt(s.version, 10))
	return s.byType[reflect.TypeOf(object)].put(object)
}

func (s *shelves) clear() {
	for _, informer := range s.byType {
		informer.clear()
	}
}
