"""Sentences of model files that can't be read or served: English -> Chinese. What is said of one file is put
into a frame: "{name} is damaged: {why}."
"""

from __future__ import annotations

CHECKPOINTS = {
    # frames
    "{name} is damaged: {why}. Download it again.": "{name} 已损坏：{why}。请重新下载。",
    "{name} cannot be used: {why}.": "无法使用 {name}：{why}。",
    "{name} cannot be read: {why}.": "无法读取 {name}：{why}。",
    "{name} cannot be used as it is. {advice}.": "{name} 不能直接使用。{advice}。",
    "{file} is damaged: {prefix}{key} is {value}; it must be {kind}.": (
        "{file} 已损坏：{prefix}{key} 的值为 {value}，应为{kind}。"
    ),
    # files and folders
    "{name} names a file {file}, which no model file may be called.": (
        "{name} 中有名为 {file} 的文件，模型文件不允许使用这个名称。"
    ),
    "{name} in {folder} is a link to a place outside of that folder.": (
        "{folder} 中的 {name} 是指向文件夹之外的链接。"
    ),
    "{name} has {size} bytes; a {kind} file begins with {least}. Download it again.": (
        "{name} 只有 {size} 字节，{kind} 文件的开头就有 {least} 字节。请重新下载。"
    ),
    "{name} cannot be read: it is no file, or a link that leads to none.": (
        "无法读取 {name}：它不是文件，或链接的目标不存在。"
    ),
    "{name} has {size} bytes; at most {most} are read.": "{name} 有 {size} 字节，最多读取 {most} 字节。",
    "{path} is neither a file nor a folder.": "{path} 既不是文件，也不是文件夹。",
    "Give the folder that it lies in: config.json and tokenizer.json are needed, too": (
        "请指定它所在的文件夹：还需要 config.json 和 tokenizer.json"
    ),
    "Give the folder that it lies in": "请指定它所在的文件夹",
    "Files of that kind can hold programs and are never opened; look for the model as safetensors or GGUF": (
        "此类文件可能含有程序，从不打开；请改用该模型的 safetensors 或 GGUF 版本"
    ),
    "{name} is no model: it has neither a config.json nor a GGUF file.": (
        "{name} 不是模型：其中既没有 config.json，也没有 GGUF 文件。"
    ),
    "{name} has {count} GGUF files; name one of them: {names}.": (
        "{name} 中有 {count} 个 GGUF 文件，请指定其中之一：{names}。"
    ),
    "{name} has {count} safetensors files and no {index}, which says what is in them.": (
        "{name} 中有 {count} 个 safetensors 文件，但缺少说明其内容的 {index}。"
    ),
    "{name} has its weights only as {file}. {why}.": "{name} 的权重只有 {file}。{why}。",
    "{name} has weights in {file}. {why}.": "{name} 的权重在 {file} 中。{why}。",
    "{name} has no {file}; the download is incomplete.": "{name} 缺少 {file}，下载不完整。",
    "{file} and {count} more": "{file} 等，另有 {count} 个",
    "{index} is damaged: it has no weight_map that says where each tensor is.": (
        "{index} 已损坏：其中没有说明各张量位置的 weight_map。"
    ),
    "{index} names {count} files; at most {most} are taken.": (
        "{index} 列出了 {count} 个文件，最多 {most} 个。"
    ),
    "{name} is damaged: tensor {tensor} is {where}.": "{name} 已损坏：张量 {tensor} {where}。",
    "missing in {file}": "在 {file} 中缺失",
    "not named by the index but in {file}": "未列入索引，却在 {file} 中",
    "{name} has more than {most} tensors.": "{name} 的张量超过 {most} 个。",
    "{name} has the tensor {tensor} under two names; one of them is {other}.": (
        "{name} 中的张量 {tensor} 有两个名称，其中之一是 {other}。"
    ),
    "config.json is damaged: its text_config is {value}, not a table.": (
        "config.json 已损坏：text_config 的值为 {value}，不是表。"
    ),
    "chat_template.jinja is not UTF-8 at byte {at}.": "chat_template.jinja 在第 {at} 字节处不是 UTF-8。",
    "The chat template {name} is {value}, not a text.": "对话模板 {name} 的值为 {value}，不是文本。",
    # JSON
    "the key {name} is there twice": "键 {name} 重复",
    "it holds NaN, which is no number": "含有非数值 NaN",
    "it holds about {count} values, and at most {most} are read": "约有 {count} 个值，最多读取 {most} 个",
    "it is not UTF-8 at byte {at}": "第 {at} 字节处不是 UTF-8",
    "it is nested too deeply": "嵌套过深",
    "it is not JSON: {why}": "不是 JSON：{why}",
    "it holds a {kind}, not an object": "内容是 {kind}，不是对象",
    # GGUF
    "There is no {name}{which}.": "没有 {name}{which}。",
    "; all {count} parts must lie in one folder": "；全部 {count} 个部分应在同一文件夹中",
    "{name} is damaged: tensor {tensor} is in an earlier part, too.": (
        "{name} 已损坏：张量 {tensor} 在前面的部分中已有。"
    ),
    "{name} is damaged: it names {wanted} tensors, its parts have {count}.": (
        "{name} 已损坏：应有 {wanted} 个张量，各部分共有 {count} 个。"
    ),
    "{name} says that it is in {count} parts; at most {most} are taken.": (
        "{name} 声明分为 {count} 个部分，最多 {most} 个。"
    ),
    "{name} says that it is {shown}, not {number} of {count}{ending}.": (
        "{name} 声明自己是{shown}，而文件名表示第 {number} 部分，共 {count}{ending}。"
    ),
    "part {number} (from 0) of {count}": "第 {number} 部分（从 0 计，共 {count} 个）",
    "; such files are called NAME-{number}-of-00000.gguf": "；此类文件应命名为 NAME-{number}-of-00000.gguf",
    "{name} is not a GGUF file: it begins with '{magic}'.": "{name} 不是 GGUF 文件：开头为 '{magic}'。",
    "{name} is a big-endian GGUF file; only little-endian ones are served.": (
        "{name} 是大端 GGUF 文件，只支持小端。"
    ),
    "{name} is GGUF version {version}; only versions 2 and 3 are served.": (
        "{name} 是 GGUF 第 {version} 版，只支持第 2 和第 3 版。"
    ),
    "the version": "版本号",
    "{noun} number {number} has no name": "第 {number} 个 {noun} 没有名称",
    "the {noun} {name} is there twice": "{noun} {name} 重复",
    "{what} takes {size} bytes from {start} on, the header can go to {end}": (
        "{what}从 {start} 起占 {size} 字节，而文件头只能到 {end}"
    ),
    "the number of {what}": "{what}的数量",
    "it claims {count} {what}, and there is room for {most}": "声明有 {count} 个{what}，而只容得下 {most} 个",
    "the length of {what}": "{what}的长度",
    "{what} has {size} bytes, more than {most}": "{what}有 {size} 字节，超过 {most}",
    "{what} is not UTF-8: {text}": "{what}不是 UTF-8：{text}",
    "the type of {name}": "{name} 的类型",
    "{key} has the unknown type {kind}": "{key} 的类型 {kind} 未知",
    "{key} is {value}, neither false (0) nor true (1)": "{key} 的值为 {value}，既不是假（0）也不是真（1）",
    "the element type of {key}": "{key} 的元素类型",
    "{key} is an array of the type {kind}, which is not served": "{key} 是不支持的 {kind} 类型数组",
    "elements of {key}": "{key} 的元素",
    "text {number} of {key}": "{key} 的第 {number} 段文本",
    "a text of {key} is not UTF-8: {text}": "{key} 的某段文本不是 UTF-8：{text}",
    "the number of dimensions of {name}": "{name} 的维数",
    "tensor {name} has {count} dimensions, not 1 to {most}": "张量 {name} 有 {count} 维，应为 1 到 {most} 维",
    "a dimension of {name}": "{name} 的某一维",
    "tensor {name} has the dimensions {dims}, not all between 1 and 2^63 - 1": (
        "张量 {name} 的维度为 {dims}，应都在 1 到 2^63 - 1 之间"
    ),
    "tensor {name} has the unknown type {kind}": "张量 {name} 的类型 {kind} 未知",
    "tensor {name} has rows of {count} values, which blocks of {block} do not fill": (
        "张量 {name} 每行 {count} 个值，不能由 {block} 个一组填满"
    ),
    "the offset of {name}": "{name} 的偏移",
    "general.alignment is {value}, not {limits}": "general.alignment 的值为 {value}，应为{limits}",
    "a power of two from {least} to {most}": " {least} 到 {most} 之间的 2 的幂",
    "tensor {name} has the offset {offset}, no multiple of {alignment}": (
        "张量 {name} 的偏移 {offset} 不是 {alignment} 的倍数"
    ),
    "tensor {name} ends at byte {end}, the file at {size}": (
        "张量 {name} 结束于第 {end} 字节，文件只到 {size}"
    ),
    "tensor {name} begins at {start}, before {last} ends at {end}": (
        "张量 {name} 始于 {start}，而 {last} 到 {end} 才结束"
    ),
    # safetensors
    "its header takes {length} bytes from 8 on, the file ends at {size}": (
        "文件头从 8 起占 {length} 字节，文件只到 {size}"
    ),
    "its header has {length} bytes, more than {most}": "文件头有 {length} 字节，超过 {most}",
    "its header begins with {start}, not with {sign}": "文件头以 {start} 开头，应以 {sign} 开头",
    "its __metadata__ is not a table of texts": "__metadata__ 不是文本表",
    "a tensor's name has {length} characters, not 1 to {most}": (
        "某个张量名有 {length} 个字符，应为 1 到 {most} 个"
    ),
    "tensor {name} is {value}, not dtype, shape and data_offsets": (
        "张量 {name} 的值为 {value}，应有 dtype、shape 和 data_offsets"
    ),
    "tensor {name} has the unknown dtype {dtype}": "张量 {name} 的 dtype {dtype} 未知",
    "tensor {name} has the shape {shape}, not up to {most} sizes from 1 on": (
        "张量 {name} 的形状为 {shape}，应为至多 {most} 个不小于 1 的数"
    ),
    "tensor {name} has the data_offsets {place}, not where it begins and ends": (
        "张量 {name} 的 data_offsets 为 {place}，不是起止位置"
    ),
    "tensor {name}, {dtype} {shape}, takes {size} bytes and has {room}": (
        "张量 {name}（{dtype} {shape}）需要 {size} 字节，实有 {room} 字节"
    ),
    "tensor {name} has rows of {count} {dtype}, which are no whole bytes": (
        "张量 {name} 每行 {count} 个 {dtype}，不是整字节"
    ),
    "the header": "文件头",
    "{name} ends at {end}": "{name} 结束于 {end}",
    "tensor {name} begins at byte {start}, {ends}": "张量 {name} 始于第 {start} 字节，{ends}",
    "its tensors end at byte {end}, the file at {size}": "张量结束于第 {end} 字节，文件到 {size}",
}
