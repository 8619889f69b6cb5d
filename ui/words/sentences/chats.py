"""What is said of chats, their files, the settings, and the program itself.

English -> Chinese, {name} is a hole for a value.
"""

from __future__ import annotations

CHATS = {
    # answers
    "The answer failed": "回答失败",
    "The answer ended without saying why.": "回答已结束，但未说明原因。",
    "This chat is still answering. Stop it, or wait until it has finished.": (
        "此对话仍在回答。请先停止，或等它结束。"
    ),
    "There is nothing in this chat to answer.": "此对话中没有可回答的内容。",
    "{count} answers were asked for; there can be 1 to {most}.": (
        "请求了 {count} 个回答，只能是 1 到 {most} 个。"
    ),
    "{count} answers were asked of {models} models.": "请求了 {count} 个回答，却指定了 {models} 个模型。",
    "Only the last answer of a chat can go on.": "只有对话的最后一个回答可以继续。",
    "Pick one of the answers first: the message goes below it.": "请先选用其中一个回答，消息会接在它之后。",
    "Octavo is ending.": "Octavo 正在退出。",
    # messages
    "Write a message first: this one is empty.": "消息是空的，请先输入内容。",
    "Write an answer first: this one is empty.": "回答是空的，请先输入内容。",
    "This message does not exist any more.": "这条消息已不存在。",
    "This message does not exist any more. Reload the page.": "这条消息已不存在，请刷新页面。",
    "This message does not wait any more.": "这条消息已不在等待。",
    "This message is not on the page any more. Reload it.": "这条消息已不在页面上，请刷新页面。",
    "This message is gone.": "这条消息已不存在。",
    "This chat has changed since it was shown. Reload the page.": "此对话在显示之后有了变化，请刷新页面。",
    "This chat does not exist any more.": "此对话已不存在。",
    # names, folders, presets
    "Write a title first: this one is empty.": "标题是空的，请先输入内容。",
    "Write a name first: this one is empty.": "名称是空的，请先输入内容。",
    "This preset does not exist any more.": "此预设已不存在。",
    "There are {count} presets; at most {most} are kept.": "已有 {count} 个预设，最多保存 {most} 个。",
    "This system prompt has {count} characters; at most {most} fit.": (
        "此系统提示词有 {count} 个字符，最多 {most} 个。"
    ),
    "This text has {count} characters; at most {most} fit.": "此文本有 {count} 个字符，最多 {most} 个。",
    "This folder does not exist any more.": "此文件夹已不存在。",
    "There is a folder “{name}” already.": "已有名为“{name}”的文件夹。",
    "There are {count} folders; at most {most} are kept.": "已有 {count} 个文件夹，最多保存 {most} 个。",
    "A chat can't decide {name}; it can decide {names}.": "对话不能设定 {name}，可设定的有：{names}。",
    # summing up
    "There is nothing to sum up yet: this chat has no older part than its last question and answer.": (
        "目前没有可概括的内容：此对话只有最后一次问答。"
    ),
    "Summing up failed": "概括失败",
    "The model wrote no summary. Try again, or start a new chat.": "模型没有写出概括。请重试，或新建对话。",
    # the file with the chats
    "The chats are closed: Octavo is ending.": "对话已关闭：Octavo 正在退出。",
    "{path} was written by a newer Octavo (its form is {form}, this one knows {known}). Update Octavo, "
    "or set OCTAVO_HOME to another folder.": (
        "{path} 由较新的 Octavo 写入（格式为 {form}，当前版本只认识 {known}）。请更新 Octavo，或把 "
        "OCTAVO_HOME 设为另一个文件夹。"
    ),
    "This could not be saved: {path} was deleted or replaced. Start Octavo again.": (
        "未能保存：{path} 被删除或替换。请重新启动 Octavo。"
    ),
    "{path} is damaged. It was kept as {name}, and an empty one was begun.": (
        "{path} 已损坏。原文件保留为 {name}，并新建了一个空文件。"
    ),
    "Another program works with {path}. Close it and try again.": (
        "另一个程序正在使用 {path}。请关闭它后重试。"
    ),
    "This could not be saved: the disk is full ({free} free). Make some room.": (
        "未能保存：磁盘已满（剩余 {free}）。请腾出一些空间。"
    ),
    "This could not be saved: {why} ({free} free). Try again.": "未能保存：{why}（剩余 {free}）。请重试。",
    # export and import
    "Octavo exports .json, .md and .zip.": "Octavo 可导出 .json、.md 和 .zip。",
    "A chat is exported as .json or .md.": "对话可导出为 .json 或 .md。",
    "This is no export of chats that Octavo knows: it takes its own, ChatGPT's conversations.json and "
    "Open WebUI's. Nothing was imported.": (
        "这不是 Octavo 认识的对话导出文件：可导入 Octavo 自己的、ChatGPT 的 conversations.json 和 Open "
        "WebUI 的导出。未导入任何内容。"
    ),
    "A conversation has {count} messages; at most {most} are taken. Nothing was imported.": (
        "某个对话有 {count} 条消息，最多可导入 {most} 条。未导入任何内容。"
    ),
    "A message in this file has {count} characters; at most {most} are taken. Nothing was imported.": (
        "文件中某条消息有 {count} 个字符，最多可导入 {most} 个。未导入任何内容。"
    ),
    "The messages of a conversation go round in a circle. Nothing was imported.": (
        "某个对话的消息首尾相接成环。未导入任何内容。"
    ),
    "A conversation in this file is none that Octavo knows. Nothing was imported.": (
        "文件中某个对话的格式无法识别。未导入任何内容。"
    ),
    "This file can't be read as JSON: it is none, is damaged or cut short. Nothing was imported.": (
        "无法将此文件作为 JSON 读取：它不是 JSON、已损坏或不完整。未导入任何内容。"
    ),
    "Another file is being imported. Wait until it is done.": "正在导入另一个文件，请等它完成。",
    "The file could not be kept: {why} ({free} free).": "文件未能保存：{why}（剩余 {free}）。",
    "This .zip holds no conversations.json. Nothing was imported.": (
        "此 .zip 中没有 conversations.json。未导入任何内容。"
    ),
    "This .zip can't be read: {why}. Nothing was imported.": "无法读取此 .zip：{why}。未导入任何内容。",
    "The file": "文件",
    "A conversation in this file": "文件中的某个对话",
    "{what} is larger than {most}. Nothing was imported.": "{what}超过 {most}。未导入任何内容。",
    "A document in this file has more than {most} characters. Nothing was imported.": (
        "文件中某个文档超过 {most} 个字符。未导入任何内容。"
    ),
    "The import was stopped. Nothing was imported.": "导入已停止。未导入任何内容。",
    "This file is empty. Nothing was imported.": "此文件是空的。未导入任何内容。",
    "A value in this file lies more than {count} deep. Nothing was imported.": (
        "此文件中有嵌套超过 {count} 层的值。未导入任何内容。"
    ),
    # attached files
    "A file that was attached is gone. Attach it once more.": "附加的文件已不在，请重新添加。",
    "{name} is empty.": "{name} 是空的。",
    "{name} was not taken. {why}": "{name} 未能添加。{why}",
    "This file goes with a message that waits to be sent.": "此文件属于一条等待发送的消息。",
    "There are {count} files; a message takes at most {most}.": (
        "共有 {count} 个文件，一条消息最多 {most} 个。"
    ),
    "{name} is larger than {size} MB, the most that is taken.": "{name} 超过 {size} MB 的上限。",
    "The conversation has {used} of {limit} tokens, and its answer needs room: none is left for the "
    "files. Sum up the older part, or start a new chat.": (
        "对话已用 {used} / {limit} 个 token，还需为回答留出空间，文件已放不下。请概括较早部分，或新建对话。"
    ),
    "The request's body is {size} bytes; at most {most} are taken.": "请求有 {size} 字节，最多 {most} 字节。",
    "Reading it took longer than {time} s; attach a part of it.": "读取超过 {time} 秒，请只添加其中一部分。",
    "The process that reads documents failed on it.": "读取文档的进程在处理它时失败。",
    "this program reads text only": "本程序只读取文字",
    "It is a picture; {why}.": "这是图片；{why}。",
    "It is a document of an old Office; save it as .docx or PDF and attach that.": (
        "这是旧版 Office 文档，请另存为 .docx 或 PDF 后添加。"
    ),
    "It is a document in Rich Text; save it as .docx or PDF and attach that.": (
        "这是 RTF 文档，请另存为 .docx 或 PDF 后添加。"
    ),
    "It is sound or film; {why}.": "这是音频或视频；{why}。",
    "It is an archive; unpack it and attach what is in it.": "这是压缩包，请解压后添加其中的文件。",
    "It is a spreadsheet; save it as CSV and attach that.": "这是电子表格，请另存为 CSV 后添加。",
    "It is a presentation; save it as PDF and attach that.": "这是演示文稿，请另存为 PDF 后添加。",
    "It is an OpenDocument file; save it as .docx or PDF and attach that.": (
        "这是 OpenDocument 文件，请另存为 .docx 或 PDF 后添加。"
    ),
    "It is a ZIP archive and no Word document; unpack it and attach what is in it.": (
        "这是 ZIP 压缩包而不是 Word 文档，请解压后添加其中的文件。"
    ),
    "It is neither text nor PDF nor Word; {why}.": "它不是文本、PDF 或 Word；{why}。",
    "It is protected by a password; save a copy without one (by printing to PDF) and attach that.": (
        "它有密码保护，请（用打印为 PDF 的方式）另存一份无密码的副本后添加。"
    ),
    "It is damaged or cut short; open it in another program and save it anew.": (
        "它已损坏或不完整，请用其他程序打开并重新保存。"
    ),
    "It has {pages} without text, scanned perhaps; {why}, no pictures.": (
        "它有 {pages} 没有文字，可能是扫描件；{why}，不识别图片。"
    ),
    "{count} pages": "{count} 页",
    "a page": "一页",
    "A page of it unpacks to more than is read; print it into a new PDF and attach that.": (
        "其中一页解压后过大，无法读取；请打印为新的 PDF 后添加。"
    ),
    "It unpacks to {size} MB, which was too much; attach a part of it.": (
        "解压后有 {size} MB，过大而无法读取；请只添加其中一部分。"
    ),
    "There is no text in it.": "其中没有文字。",
    "It has more than {most} characters of text; attach a part of it.": (
        "文字超过 {most} 个字符，请只添加其中一部分。"
    ),
    "It has {count} pages; at most {most} are read. Attach a part of it.": (
        "它有 {count} 页，最多读取 {most} 页。请只添加其中一部分。"
    ),
    "It is made of {count} files; at most {most} are read.": "它由 {count} 个文件组成，最多读取 {most} 个。",
    "It unpacks to {size} MB; at most {most} MB are read.": "解压后有 {size} MB，最多读取 {most} MB。",
    "Reading it wanted more than {most} MiB of memory.": "读取它所需的内存超过 {most} MiB。",
    # the program
    "{what}; this is a fault in Octavo.{where}": "{what}，这是 Octavo 的错误。{where}",
    " The details are in {path}.": "详情见 {path}。",
    "The page asked for something that does not exist. Reload it.": "页面请求了不存在的内容，请刷新页面。",
    "The page sent something of a wrong kind. Reload it.": "页面发送了错误类型的内容，请刷新页面。",
    "This can't be kept: it holds half a character or a number of more than 18 digits.": (
        "无法保存：其中有半个字符，或超过 18 位的数字。"
    ),
    # settings
    "{name} holds half a character, which no file can hold. Type it once more.": (
        "{name} 中有半个字符，无法存入文件，请重新输入。"
    ),
    "{path} can't be read: {why}": "无法读取 {path}：{why}",
    "{path} can't be read: {why}.": "无法读取 {path}：{why}。",
    "{path} can't be written: {why}.": "无法写入 {path}：{why}。",
    "{path} can't be used: {why}.": "无法使用 {path}：{why}。",
    "{path} can't be used: {why}": "无法使用 {path}：{why}",
    "{path} can't be deleted: {why}.": "无法删除 {path}：{why}。",
    "{path} may only be read, so it was left as it is. Allow writing to it first.": (
        "{path} 是只读的，未做改动。请先允许写入。"
    ),
    "{path} is a file; it must be a folder. OCTAVO_HOME can name another place for the data.": (
        "{path} 是文件，应为文件夹。可用 OCTAVO_HOME 指定另一个数据位置。"
    ),
    "The folder {path} can't be used: {why}.": "无法使用文件夹 {path}：{why}。",
    "This user has no home folder. Set OCTAVO_HOME to a folder for the data.": (
        "此用户没有主目录。请把 OCTAVO_HOME 设为存放数据的文件夹。"
    ),
    "{name} is {value}; it must be {kind}.": "{name} 的值为 {value}，应为{kind}。",
    "{name} is {value}; it must be {unit}, from 0 to {most}.": (
        "{name} 的值为 {value}，应为 0 到 {most} {unit}。"
    ),
    "{name} is {value}; it must lie between {least} and {most}.": (
        "{name} 的值为 {value}，应在 {least} 到 {most} 之间。"
    ),
    "{name} is {value}; it must be one of {names}.": "{name} 的值为 {value}，只能是以下之一：{names}。",
    "{name} is {value}; it must be a table, [{table}].": "{name} 的值为 {value}，应为表 [{table}]。",
    "{name} has {count} characters; it may have {most}.": "{name} 有 {count} 个字符，最多 {most} 个。",
    "{name} = {value} is not a setting. There are {names}.": (
        "{name} = {value} 不是设置项。可用的设置：{names}。"
    ),
    "{name} is not a setting of this page.": "本页没有 {name} 这一设置。",
    "port is {value}; it must lie between 1 and 65535.": "端口为 {value}，应在 1 到 65535 之间。",
    "hub is {value}; it must be an https address, as https://huggingface.co.": (
        "模型站点为 {value}，应为 https 地址，例如 https://huggingface.co。"
    ),
    "{name} names the port {value}; it must lie between 1 and 65535.": (
        "{name} 中的端口为 {value}，应在 1 到 65535 之间。"
    ),
    "proxy must be an address with a port, as http://127.0.0.1:3128.": (
        "代理应为带端口的地址，例如 http://127.0.0.1:3128。"
    ),
    "block_size is {value}; it must be a multiple of 16.": "block_size 的值为 {value}，应为 16 的倍数。",
    "max_step_tokens is {value}; with max_num_seqs at {count} it must be at least {least}, or answers "
    "would leave prompts no room.": (
        "max_step_tokens 的值为 {value}；max_num_seqs 为 {count} 时至少应为 {least}，否则提示没有空间。"
    ),
    "text in quotes": "带引号的文本",
    "a whole number": "整数",
    "a number": "数字",
    "minutes": "分钟",
    "true or false": "true 或 false",
    "a list of texts in quotes": "带引号文本的列表",
    "“{text}” is not a number of GB.": "“{text}”不是以 GB 为单位的数字。",
    "There is no package {name}.": "没有软件包 {name}。",
}
