/* Messages between hosts, over UDP or AF_XDP, by a transport of Trimline. The library is of crate
 * trimline-c: libtrimline.so, libtrimline.a. docs/programs.md says what nodes do.
 *
 * Any thread may use a node. Bytes handed over are copied. What a function returns is the caller's
 * to give back: deliveries and replies by trimline_delivery_free, messages by
 * trimline_message_free, a node by trimline_stop. No pointer may be null but where it says so. */
#ifndef TRIMLINE_H
#define TRIMLINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of a message. */
typedef enum trimline_outcome {
    TRIMLINE_OK = 0,
    /* The node has stopped. */
    TRIMLINE_STOPPED = 1,
    /* It will not be delivered: its peer is gone, has started again, or refuses it; or it was
     * cancelled. */
    TRIMLINE_FAILED = 2,
    /* Nothing so far. It may still come. */
    TRIMLINE_TIMED_OUT = 3,
    /* Only a request can be answered. */
    TRIMLINE_NO_REQUEST = 4
} trimline_outcome;

typedef struct trimline_node trimline_node;
typedef struct trimline_delivery trimline_delivery;
typedef struct trimline_message trimline_message;

typedef struct trimline_config {
    /* "ndp", "homa" or "newreno". */
    const char *transport;
    /* Bytes of payload of a packet: with 200 B of headers it must fit the MTU of the way. */
    uint16_t payload;
    /* The number of this host, below `hosts`. */
    uint32_t me;
    /* Where each host listens, "10.0.0.1:4000", by its number. */
    const char *const *addresses;
    uint32_t hosts;
    /* Not 0: frames of the interface (AF_XDP, as root) instead of a UDP socket. */
    int xdp;
    /* Not 0: never sleep. */
    int busy;
    /* 32 bytes that all hosts have and nobody else; NULL: no key. */
    const uint8_t *key;
    /* From how many ports packets leave, its own and those behind it, the same number for all
     * hosts: as many paths does the transport choose from, which switches tell apart by the port.
     * 0 is 1. Hosts at one address are as many ports apart. */
    uint16_t source_ports;
} trimline_config;

/* A node, or NULL and why in `error`, of `room` bytes (may be NULL with 0). */
trimline_node *trimline_start(const trimline_config *config, char *error, size_t room);

/* Stop once all is delivered, or after `linger_ms`. The node is gone. */
trimline_outcome trimline_stop(trimline_node *node, uint64_t linger_ms);

/* Send a message. Waits only while the node has as much under way as it may. NULL if the node has
 * stopped. */
trimline_delivery *trimline_send(trimline_node *node, uint32_t to, const void *bytes, size_t len);

/* The same, for one who wants an answer: trimline_answer. */
trimline_delivery *trimline_request(trimline_node *node, uint32_t to, const void *bytes,
                                    size_t len);

/* Answer `request`. */
trimline_outcome trimline_respond(trimline_node *node, const trimline_message *request,
                                  const void *bytes, size_t len);

/* Wait until the receiver has confirmed the message; of a request: has answered it. */
trimline_outcome trimline_wait(const trimline_delivery *delivery, uint64_t timeout_ms);

/* Wait for the answer to a request, into `answer`; to what is no request TRIMLINE_NO_REQUEST. */
trimline_outcome trimline_answer(const trimline_delivery *request, uint64_t timeout_ms,
                                 trimline_message **answer);

/* Give the message up. */
void trimline_cancel(const trimline_delivery *delivery);

/* It need not be delivered yet, and goes on. May be NULL. */
void trimline_delivery_free(trimline_delivery *delivery);

/* The next message, into `message`. */
trimline_outcome trimline_receive(trimline_node *node, uint64_t timeout_ms,
                                  trimline_message **message);

uint32_t trimline_message_from(const trimline_message *message);
size_t trimline_message_length(const trimline_message *message);
/* Until the message is given back. */
const void *trimline_message_bytes(const trimline_message *message);
/* Not 0 if an answer is waited for. */
int trimline_message_is_request(const trimline_message *message);
/* May be NULL. */
void trimline_message_free(trimline_message *message);

#ifdef __cplusplus
}
#endif
#endif
