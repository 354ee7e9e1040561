// What kiln uses of XLA's foreign function interface: the structs that a call comes with, as xla/ffi/api/c_api.h has
// them in its versions 0.1 to 0.3 (the fields used are the same in all of them; new ones come behind). tests/python
// holds them against jaxlib's header.
#ifndef KL_XLA_ABI_H
#define KL_XLA_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_EXTENSION_METADATA = 1 };
enum { XLA_STAGE_EXECUTE = 3 };
enum { XLA_ATTRIBUTE_SCALAR = 3 };
enum { XLA_TYPE_S64 = 5 };
enum { XLA_ARGUMENT_BUFFER = 1 };
enum { XLA_TRAIT_COMMAND_BUFFER = 1 };
enum { XLA_INVALID_ARGUMENT = 3, XLA_RESOURCE_EXHAUSTED = 8, XLA_UNIMPLEMENTED = 12, XLA_INTERNAL = 13 };

typedef struct xla_error xla_error;
typedef struct xla_context xla_context;

typedef struct xla_extension {
  size_t struct_size;
  int type;
  struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
  size_t struct_size;
  xla_extension *extension;
  int major, minor;
} xla_version;

typedef struct xla_metadata {
  size_t struct_size;
  xla_version version;
  uint32_t traits;
} xla_metadata;

typedef struct xla_metadata_extension {
  xla_extension base;
  xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_error_args {
  size_t struct_size;
  xla_extension *extension;
  const char *message;
  int code;
} xla_error_args;

typedef struct xla_stream_args {
  size_t struct_size;
  xla_extension *extension;
  xla_context *context;
  void *stream; // out
} xla_stream_args;

typedef struct xla_allocate_args {
  size_t struct_size;
  xla_extension *extension;
  xla_context *context;
  size_t size, alignment;
  void *data; // out
} xla_allocate_args;

typedef struct xla_free_args {
  size_t struct_size;
  xla_extension *extension;
  xla_context *context;
  size_t size;
  void *data;
} xla_free_args;

typedef struct xla_message_args {
  size_t struct_size;
  xla_extension *extension;
  xla_error *error;
  const char *message; // out
} xla_message_args;

typedef struct xla_api {
  size_t struct_size;
  xla_extension *extension;
  xla_version version;
  const void *internal;
  xla_error *(*error_create)(xla_error_args *);
  void (*error_message)(xla_message_args *);
  void *error_destroy, *handler_register;
  xla_error *(*stream_get)(xla_stream_args *);
  void *type_register, *context_get, *state_set, *state_get;
  xla_error *(*allocate)(xla_allocate_args *);
  xla_error *(*free)(xla_free_args *);
} xla_api;

typedef struct xla_buffer {
  size_t struct_size;
  xla_extension *extension;
  int dtype;
  void *data;
  int64_t rank;
  int64_t *dims;
} xla_buffer;

// Arguments and results alike.
typedef struct xla_list {
  size_t struct_size;
  xla_extension *extension;
  int64_t size;
  int *types;
  void **items;
} xla_list;

typedef struct xla_name {
  const char *text;
  size_t size;
} xla_name;

typedef struct xla_scalar {
  int dtype;
  void *value;
} xla_scalar;

typedef struct xla_attributes {
  size_t struct_size;
  xla_extension *extension;
  int64_t size;
  int *types;
  xla_name **names;
  void **items;
} xla_attributes;

typedef struct xla_call {
  size_t struct_size;
  xla_extension *extension;
  const xla_api *api;
  xla_context *context;
  int stage;
  xla_list arguments, results;
  xla_attributes attributes;
} xla_call;

#endif
